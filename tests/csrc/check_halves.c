/* check_halves.c - sums of a step run k times against their multinomial weights, each outcome once; tails of two laws
 * against all their pairs in long double, within what halves.c claims, with arrays of their exact sizes. */
#include "hs.h"
#include "special.h"

#include <stdlib.h>

#include "expect.h"

enum { ATOMS = 4, TIMES = 9, TAILS = 4 };

static double uniform(void)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static double *room(int64_t n) { return malloc(sizeof(double) * (size_t)n); }

/* Masses of a step are i + 1 over their sum under num, and those backwards under den; losses are i. */
static void sums(int64_t m, int64_t k)
{
    double *step = room(3 * m), *terms = room(2 * m * (k + 1)), *work = room(hs_halves_work(m));
    double *out, start = 1, num = 0;
    double den = 0, mean = 0, all = (double)(m * (m + 1)) / 2;
    int64_t n = 1, i, j;
    for (i = 1; i < m; i++) n = n * (k + i) / i; /* ways to have m counts that add up to k */
    for (j = 1; j <= k; j++) start *= (double)j / (double)k;
    for (i = 0; i < m; i++) {
        step[i] = (double)i;
        step[m + i] = 1e-3;
        step[2 * m + i] = 1e-2;
        terms[i * (k + 1)] = terms[(m + i) * (k + 1)] = 1;
        for (j = 1; j <= k; j++) {
            terms[i * (k + 1) + j] = terms[i * (k + 1) + j - 1] * (double)k * (double)(i + 1) / all / (double)j;
            terms[(m + i) * (k + 1) + j] =
                terms[(m + i) * (k + 1) + j - 1] * (double)k * (double)(m - i) / all / (double)j;
        }
    }
    out = room(5 * n);
    hs_halves_sums(m, k, step, terms, start, work, n, out);
    for (j = 0; j < n; j++) {
        num += out[n + j];
        den += out[2 * n + j];
        mean += out[j] * out[n + j];
        expect(fabs(out[3 * n + j] - 1e-3 * (double)k) < 1e-15 && fabs(out[4 * n + j] - 1e-2 * (double)k) < 1e-14,
               "what sums are off by", (double)m, (double)k, (double)j);
    }
    expect(fabs(num - 1) < 1e-13 && fabs(den - 1) < 1e-13, "masses", (double)m, (double)k, num);
    expect(fabs(mean - (double)k * 2 * (double)(m - 1) / 3) < 1e-12, "mean", (double)m, (double)k, mean);
    free(step);
    free(terms);
    free(work);
    free(out);
}

/* Rows of losses that increase, num and den. */
static double *law(int64_t n)
{
    double *a = room(3 * n), at = -1;
    int64_t i;
    for (i = 0; i < n; i++) {
        a[i] = at += floor(4 * uniform()) / 4; /* some alike, and sums that are exactly at s */
        a[n + i] = exp(-20 * uniform());
        a[2 * n + i] = exp(-20 * uniform());
    }
    return a;
}

static void tails(int64_t n, int64_t n_b)
{
    double *a = law(n), *b = law(n_b), *table = room(TAILS * (n_b + 1));
    double s[3], out[3 * TAILS];
    int64_t i, j;
    int at, r;
    for (at = 0; at < 3; at++) s[at] = floor(4 * (a[0] + b[0] + uniform() * (a[n - 1] - a[0] + b[n_b - 1] - b[0]))) / 4;
    hs_halves_table(n_b, b + n_b, b + 2 * n_b, table);
    hs_halves_tails(n, a, n_b, b, table, 3, s, out);
    for (at = 0; at < 3; at++) {
        long double sum[TAILS] = {0};
        for (i = 0; i < n; i++)
            for (j = 0; j < n_b; j++)
                for (r = 0; r < TAILS; r++)
                    if ((a[i] + b[j] > s[at]) == r % 2)
                        sum[r] += (long double)a[(1 + r / 2) * n + i] * b[(1 + r / 2) * n_b + j];
        for (r = 0; r < TAILS; r++)
            expect(fabsl(out[TAILS * at + r] - sum[r]) <= 4 * HS_U * sum[r], "tail", (double)n, (double)r, s[at]);
    }
    free(a);
    free(b);
    free(table);
}

int main(void)
{
    int64_t m, k;
    for (m = 1; m <= ATOMS; m++)
        for (k = 1; k <= TIMES; k++) sums(m, k);
    for (k = 0; k < 100; k++) tails(1 + (int64_t)(40 * uniform()), 1 + (int64_t)(40 * uniform()));
    printf("%ld checks, %d failures\n", calls, failures);
    return failures != 0;
}
