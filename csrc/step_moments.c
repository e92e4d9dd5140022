/* step_moments.c - Chebyshev moments of the shifts of many steps, in whole numbers: the order of the steps, how they
 * are cut into calls, and taking a step away again change no bit.
 *
 * Symbols. m = 2^e (1 + (i + f)/8), i = 0..7, 0 <= f < 1: box 8 (e - HS_STEP_LOWEST) + i, x = 2 f - 1, exactly.
 *   T_j(x) by T_{j+1} = 2 x T_j - T_{j-1}; t_j = 2^50 T_j rounded to an integer.
 *
 * Formula. sums[box][j] = sum k t_j, in two's complement of 128 bits, the lower word first.
 *
 * Error claim. |2^-50 t_j - T_j| <= 2^-51 + 1.5 j (j - 1) u, u = 2^-53 [theory: compression.moments]. t_j is the sum 6
 *   + T_j, whose last bit is 2^-50, less that of 6 and 0. Sums are exact below 2^127: for 2^36 steps of the largest
 *   count.
 *
 * What it does not do: steps of different sampling rates; shifts that are no normal numbers in range.
 */
#include "hs.h"
#include "special.h"

enum { BLOCK = 64, MOMENTS = HS_STEP_MOMENTS };

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
    for (j = 1; j < MOMENTS; j++)
        for (i = 0; i < n; i++) {
            double next = 2 * x[i] * b[i] - a[i];
            t[j][i] = (int64_t)(hs_bits(b[i] + 6.0) - six);
            a[i] = b[i];
            b[i] = next;
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
#else /* |t| in pieces of 26 bits, |k| of 21 */
    uint64_t a = (uint64_t)(t < 0 ? -t : t), b = (uint64_t)(k < 0 ? -k : k);
    uint64_t low, high, piece[4], before;
    static const int place[4] = {0, 21, 26, 47};
    int i;
    piece[0] = (a & 0x3ffffff) * (b & 0x1fffff);
    piece[1] = (a & 0x3ffffff) * (b >> 21);
    piece[2] = (a >> 26) * (b & 0x1fffff);
    piece[3] = (a >> 26) * (b >> 21);
    low = piece[0];
    high = 0;
    for (i = 1; i < 4; i++) {
        before = low;
        low += piece[i] << place[i];
        high += (piece[i] >> (64 - place[i])) + (low < before);
    }
    if ((t < 0) != (k < 0)) {
        high = ~high + (low == 0);
        low = 0 - low;
    }
    sum[0] += low;
    sum[1] += high + (sum[0] < low);
#endif
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
            add_product(sum, (int64_t)1 << 50, times);
            for (j = 1; j < MOMENTS; j++) add_product(sum + 2 * j, t[j][i], times);
        }
    }
    return HS_OK;
}

int hs_step_moments_join(int sign, const uint64_t *others, uint64_t *sums)
{
    int64_t i;
    for (i = 0; i < (int64_t)2 * MOMENTS * HS_STEP_BOXES; i += 2) {
        uint64_t low = others[i], high = others[i + 1];
        if (sign < 0) {
            high = ~high + (low == 0);
            low = 0 - low;
        }
        sums[i] += low;
        sums[i + 1] += high + (sums[i] < low);
    }
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
