/* step_moments.c - Chebyshev moments of the shifts of many steps, in whole numbers: the order of the steps, how they
 * are cut into calls, and taking a step away again change no bit.
 *
 * Symbols. m = 2^e (1 + (i + f)/8), i = 0..7, 0 <= f < 1: box 8 (e - HS_STEP_LOWEST) + i, x = 2 f - 1, exactly.
 *   T_j(x) by T_{j+1} = 2 x T_j - T_{j-1}; t_j = 2^50 T_j rounded to an integer. A rate q < 1 lies in one of 32 cells
 *   to the octave in the same way, at y; s_j = 2^60 T_j(y) rounded.
 *
 * Formula. sums[box][j] = sum k t_j, in two's complement of 128 bits, the lower word first; of a box and a cell of
 *   rates sums[i][j] = sum k t_i s_j, of 192 bits. These are sum s_j (sum k t_i) over the rates, whose own sums may
 *   become theirs at any time.
 *
 * Error claim. |2^-50 t_j - T_j| <= 2^-51 + 1.5 j (j - 1) u, u = 2^-53 [theory: compression.moments]. t_j is the sum 6
 *   + T_j, whose last bit is 2^-50, less that of 6 and 0. |2^-60 s_j - T_j| <= 2^-56, from integers of 2^-61. Sums are
 *   exact below 2^127 and 2^191: for 2^36 steps of the largest count, and more.
 *
 * What it does not do: shifts and rates that are no normal numbers in range.
 */
#include "hs.h"
#include "special.h"

enum { BLOCK = 64, MOMENTS = HS_STEP_MOMENTS, DEGREES = HS_RATE_DEGREES };

/* The boxes of n <= BLOCK shifts, and t[j][i]. */
HS_CLONES static void rounded(int n, const double *m, int64_t *box, int64_t (*t)[BLOCK])
{
    double x[BLOCK], a[BLOCK], b[BLOCK];
    uint64_t six = hs_bits(6.0);
    int i, j;
    for (i = 0; i < n; i++) {
        uint64_t bits = hs_bits(m[i]);
        box[i] = (int64_t)(bits >> 49) - 8 * (1023 + HS_STEP_LOWEST);
        x[i] = 2 * hs_from_bits(((bits << 3) & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL) - 3;
        a[i] = 1;
        b[i] = x[i];
    }
    for (i = 0; i < n; i++) t[0][i] = (int64_t)1 << 50;
    for (j = 1; j < MOMENTS; j++)
        for (i = 0; i < n; i++) {
            double next = 2 * x[i] * b[i] - a[i];
            t[j][i] = (int64_t)(hs_bits(b[i] + 6.0) - six);
            a[i] = b[i];
            b[i] = next;
        }
}

/* a b, whose upper word is *high. */
static inline uint64_t product(uint64_t a, uint64_t b, uint64_t *high)
{
#if defined(__SIZEOF_INT128__) && !defined(HS_NO_INT128)
    __extension__ typedef unsigned __int128 wide;
    wide p = (wide)a * b;
    *high = (uint64_t)(p >> 64);
    return (uint64_t)p;
#else
    uint64_t half = 0xffffffff, low = (a & half) * (b & half), one = (a >> 32) * (b & half) + (low >> 32);
    uint64_t other = (a & half) * (b >> 32) + (one & half);
    *high = (a >> 32) * (b >> 32) + (one >> 32) + (other >> 32);
    return other << 32 | (low & half);
#endif
}

/* sum += number, or with minus -=, of so many words. */
static inline void add_words(uint64_t *sum, const uint64_t *number, int words, int minus)
{
    uint64_t carry = 0;
    int i;
    for (i = 0; i < words; i++) {
        uint64_t x = number[i] + carry, before = sum[i];
        carry = x < carry;
        sum[i] = minus ? before - x : before + x;
        carry += minus ? before < x : sum[i] < x;
    }
}

/* sum += t k, |t| <= 2^51, |k| <= 2^41. */
static inline void add_product(uint64_t *sum, int64_t t, int64_t k)
{
#if defined(__SIZEOF_INT128__) && !defined(HS_NO_INT128)
    __extension__ typedef unsigned __int128 wide;
    __extension__ typedef __int128 whole;
    wide now = ((wide)sum[1] << 64 | sum[0]) + (wide)((whole)t * k);
    sum[0] = (uint64_t)now;
    sum[1] = (uint64_t)(now >> 64);
#else
    uint64_t number[2];
    number[0] = product((uint64_t)(t < 0 ? -t : t), (uint64_t)(k < 0 ? -k : k), &number[1]);
    add_words(sum, number, 2, (t < 0) != (k < 0));
#endif
}

/* s_j of a rate: T_j in units of 2^-61, of which each step of the recurrence is off by half a unit, rounded. */
static void rate_degrees(double q, int64_t *s)
{
    int64_t y = 2 * (int64_t)(hs_bits(q) & 0x00007fffffffffffULL) - ((int64_t)1 << 47);
    int64_t before = y * ((int64_t)1 << 14), now = (int64_t)1 << 61; /* T_{-1} = T_1 = y */
    int j;
    for (j = 0; j < DEGREES; j++) {
        uint64_t high, low = product((uint64_t)(y < 0 ? -y : y), (uint64_t)(now < 0 ? -now : now), &high);
        int64_t twice = (int64_t)(high << 18 | low >> 46) + (int64_t)(low >> 45 & 1), next;
        s[j] = (now + 1 - ((now + 1) & 1)) / 2;
        next = ((y < 0) != (now < 0) ? -twice : twice) - before;
        before = now;
        now = next;
    }
}

/* sum[i][j] += or -= a[i] s[j], a in 128 bits without its sign. */
static void add_rows(const uint64_t (*a)[2], const int *negative, const int64_t *s, uint64_t *sums)
{
    int i, j;
    for (i = 0; i < MOMENTS; i++)
        for (j = 0; j < DEGREES; j++, sums += 3) {
            uint64_t size = (uint64_t)(s[j] < 0 ? -s[j] : s[j]), number[3], more;
            number[0] = product(a[i][0], size, &number[1]);
            more = product(a[i][1], size, &number[2]);
            number[1] += more;
            number[2] += number[1] < more;
            add_words(sums, number, 3, (s[j] < 0) != negative[i]);
        }
}

/* Steps that are in range and normal; so all that are added can be taken away. */
static int in_range(int64_t n, const double *m, const int64_t *k)
{
    double low = ldexp(1, HS_STEP_LOWEST), high = ldexp(low, HS_STEP_BOXES / 8);
    int64_t i, most = (int64_t)1 << 41;
    int bad = 0;
    for (i = 0; i < n; i++) bad |= !(m[i] >= low && m[i] < high);
    for (i = 0; k && i < n; i++) bad |= !(k[i] >= 1 && k[i] <= most);
    return !bad;
}

int hs_step_moments_add(int64_t n, const double *m, const int64_t *k, int sign, uint64_t *sums)
{
    int64_t first, box[BLOCK], t[MOMENTS][BLOCK];
    int i, j;
    if (!(sign == 1 || sign == -1) || !in_range(n, m, k)) return HS_BAD_ARGUMENT;
    for (first = 0; first < n; first += BLOCK) {
        int count = n - first < BLOCK ? (int)(n - first) : BLOCK;
        rounded(count, m + first, box, t);
        for (i = 0; i < count; i++) {
            uint64_t *sum = sums + 2 * MOMENTS * box[i];
            int64_t times = sign * (k ? k[first + i] : 1);
            for (j = 0; j < MOMENTS; j++) add_product(sum + 2 * j, t[j][i], times);
        }
    }
    return HS_OK;
}

/* Steps of rates in range and below 1. */
static int rates_in_range(int64_t n, const double *q)
{
    int64_t i;
    int bad = 0;
    for (i = 0; i < n; i++) bad |= !(q[i] >= ldexp(1, HS_RATE_LOWEST) && q[i] < 1);
    return !bad;
}

int hs_rate_moments_add(int64_t n, const double *m, const double *q, const int64_t *k, int sign, uint64_t *sums)
{
    int64_t first, box[BLOCK], t[MOMENTS][BLOCK], s[DEGREES];
    uint64_t a[MOMENTS][2];
    int i, j, negative[MOMENTS];
    if (!(sign == 1 || sign == -1) || !in_range(n, m, k) || !rates_in_range(n, q)) return HS_BAD_ARGUMENT;
    for (first = 0; first < n; first += BLOCK) {
        int count = n - first < BLOCK ? (int)(n - first) : BLOCK;
        rounded(count, m + first, box, t);
        for (i = 0; i < count; i++) {
            uint64_t times = k ? (uint64_t)k[first + i] : 1;
            for (j = 0; j < MOMENTS; j++) {
                negative[j] = (t[j][i] < 0) != (sign < 0);
                a[j][0] = product((uint64_t)(t[j][i] < 0 ? -t[j][i] : t[j][i]), times, &a[j][1]);
            }
            rate_degrees(q[first + i], s);
            add_rows(a, negative, s, sums);
        }
    }
    return HS_OK;
}

int hs_rate_moments_of(double q, const uint64_t *box, uint64_t *sums)
{
    int64_t s[DEGREES];
    uint64_t a[MOMENTS][2];
    int j, negative[MOMENTS];
    if (!rates_in_range(1, &q)) return HS_BAD_ARGUMENT;
    for (j = 0; j < MOMENTS; j++) {
        negative[j] = (int)(box[2 * j + 1] >> 63);
        a[j][0] = a[j][1] = 0;
        add_words(a[j], &box[2 * j], 2, negative[j]);
    }
    rate_degrees(q, s);
    add_rows(a, negative, s, sums);
    return HS_OK;
}

int hs_moments_join(int sign, int words, int64_t n, const uint64_t *others, uint64_t *sums)
{
    int64_t i;
    if (!(words == 2 || words == 3) || !(sign == 1 || sign == -1)) return HS_BAD_ARGUMENT;
    for (i = 0; i < n; i++) add_words(sums + words * i, others + words * i, words, sign < 0);
    return HS_OK;
}

/* A moment below 2^114 in size, as a product of 2^-50 and a double: within 3u of itself. */
int hs_step_moments_read(const uint64_t *sums, double *moments)
{
    int64_t i;
    for (i = 0; i < (int64_t)MOMENTS * HS_STEP_BOXES; i++) {
        uint64_t low = sums[2 * i], high = sums[2 * i + 1], minus = high >> 63;
        if (minus) {
            high = ~high + (low == 0);
            low = 0 - low;
        }
        moments[i] = ((double)high * 0x1p14 + (double)low * 0x1p-50) * (minus ? -1 : 1);
    }
    return HS_OK;
}
