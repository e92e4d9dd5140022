/* halves.c - all sums of the losses of one step run k times, and tails of the sum of two laws, of which none is formed.
 *
 * Sums of one step. m atoms of losses L_i, taken n_i times, sum n_i = k, have the loss sum n_i L_i and the mass
 *   start prod t_i(n_i), t_i(n) = (k p_i)^n/n!, start = k!/k^k [theory: small.sums]. Rounding: m products of the
 *   terms given and, of the loss, (m+1)u sum n_i |L_i|.
 *
 * Tails of two laws. a_i losses of the first law, increasing, of masses n_i under num and d_i under den; b_j those of
 *   the second, of which the four tails y_below, y_above, x_below, x_above are known after every j.
 *   Pr[A + B > s] = sum_i n_i Pr[B > s - a_i]: as i rises the place of s - a_i among the b_j falls, so that one walk
 *   through both laws has all terms. The pairs counted are the same under num and den, and above and below.
 *
 * Error claim of the tails [theory: small.halves]. A pair may be on the wrong side of s where a_i + b_j is within
 *   2u max |b_j| of it, by the rounding of s - a_i. Each tail is within 4u of what the given masses and tails make, and
 *   2^-1074 a term; tails of one law are within 2u of the sums of its masses.
 *
 * What it does not do: sort.
 */
#include "hs.h"

enum { TAILS = 4, ROWS = 5 };

/* A law of sums so far: loss, masses under num and den, what the loss is off by, and the part that masses are. */
typedef struct {
    double at[ROWS];
    int64_t left, taken;
} sum_so_far;

/* The same after `taken` of atom i, of m, on which the rows of `step` are loss, edge and rel. */
static void take_atom(const sum_so_far *s, int64_t m, int64_t i, int64_t k, const double *step, const double *terms,
                      double *at)
{
    double n = (double)s->taken;
    at[0] = s->at[0] + n * step[i];
    at[1] = s->at[1] * terms[i * (k + 1) + s->taken];
    at[2] = s->at[2] * terms[(m + i) * (k + 1) + s->taken];
    at[3] = s->at[3] + n * step[m + i];
    at[4] = s->at[4] + n * step[2 * m + i];
}

int64_t hs_halves_work(int64_t m) { return m * (int64_t)(sizeof(sum_so_far) / sizeof(double)); }

void hs_halves_sums(int64_t m, int64_t k, const double *step, const double *terms, double start, double *work,
                    int64_t n, double *out)
{
    sum_so_far *s = (sum_so_far *)work;
    int64_t i = 0, j = 0, r;
    s[0] = (sum_so_far){{0, start, start, 0, 0}, k, 0};
    while (j < n) {
        double at[ROWS];
        if (i < m - 1 && s[i].left > 0) {
            take_atom(&s[i], m, i, k, step, terms, s[i + 1].at);
            s[i + 1].left = s[i].left - s[i].taken;
            s[++i].taken = 0;
            continue;
        }
        s[i].taken = s[i].left;
        take_atom(&s[i], m, i, k, step, terms, at);
        for (r = 0; r < ROWS; r++) out[r * n + j] = at[r];
        j++;
        while (i > 0 && s[i - 1].taken == s[i - 1].left) i--;
        if (i > 0) s[--i].taken++;
    }
}

/* total + off, off what the sums so far were rounded by, after one more term; all terms are positive. */
static void add_tail(double *total, double *off, double term)
{
    double sum = *total + term, part = sum - *total;
    *off += (*total - (sum - part)) + (term - part);
    *total = sum;
}

void hs_halves_table(int64_t n, const double *num, const double *den, double *out)
{
    int64_t i, j;
    int r;
    for (r = 0; r < TAILS; r++) {
        const double *mass = r < 2 ? num : den;
        double total = 0, off = 0;
        for (i = 0; i <= n; i++) {
            j = r % 2 ? n - i : i; /* above sums from the other end */
            out[TAILS * j + r] = total + off;
            if (i < n) add_tail(&total, &off, mass[r % 2 ? j - 1 : j]);
        }
    }
}

/* The tails at one s; j: the first place that is tried, one at which b_j is above s - a_0, or the end. */
static void tails_at(int64_t n, const double *a, const double *b, int64_t j, const double *tails, double s,
                     double *restrict out)
{
    double total[TAILS] = {0}, off[TAILS] = {0};
    int64_t i;
    int r;
    for (i = 0; i < n; i++) {
        double rest = s - a[i], mass[2];
        const double *at;
        while (j > 0 && b[j - 1] > rest) j--;
        at = tails + TAILS * j;
        mass[0] = a[n + i];
        mass[1] = a[2 * n + i];
        for (r = 0; r < TAILS; r++) add_tail(&total[r], &off[r], mass[r / 2] * at[r]);
    }
    for (r = 0; r < TAILS; r++) out[r] = total[r] + off[r];
}

void hs_halves_tails(int64_t n, const double *a, int64_t n_b, const double *b, const double *tails, int64_t n_s,
                     const double *s, double *out)
{
    int64_t i;
    for (i = 0; i < n_s; i++) tails_at(n, a, b, n_b, tails, s[i], out + TAILS * i);
}
