/* check_step_moments.c - sums of step_moments.c: products by 128-bit integers, where the compiler has them, and by
 * halves are the same bit for bit; what is added is taken away again; sums of rates are those of their steps. */
#include <stdio.h>
#include <stdlib.h>

#define HS_NO_INT128
#define hs_step_moments_add portable_add
#define hs_step_moments_read portable_read
#define hs_rate_moments_add portable_rate_add
#define hs_rate_moments_of portable_of
#define hs_moments_join portable_join
#include "step_moments.c"
#undef hs_step_moments_add
#undef hs_step_moments_read
#undef hs_rate_moments_add
#undef hs_rate_moments_of
#undef hs_moments_join
int hs_step_moments_add(int64_t n, const double *m, const int64_t *k, int sign, uint64_t *sums);
int hs_rate_moments_add(int64_t n, const double *m, const double *q, const int64_t *k, int sign, uint64_t *sums);
int hs_rate_moments_of(double q, const uint64_t *box, uint64_t *sums);
int hs_moments_join(int sign, int words, int64_t n, const uint64_t *others, uint64_t *sums);

enum { STEPS = 1000, WORDS = 2 * HS_STEP_MOMENTS * HS_STEP_BOXES, CELL = 3 * HS_STEP_MOMENTS * HS_RATE_DEGREES };

static uint64_t one[WORDS], other[WORDS];

/* Of one box and one cell: by both products, and added rate by rate. */
static int of_rates(void)
{
    uint64_t sums[2][CELL] = {{0}}, by_rates[CELL] = {0}, alone[WORDS];
    double m[STEPS], q[STEPS];
    int64_t k[STEPS];
    int i, bad = 0;
    for (i = 0; i < STEPS; i++) {
        m[i] = 0.25 * (1 + (3 + rand() / (1.0 + RAND_MAX)) / 8);
        q[i] = ldexp(1 + (rand() % 2 + rand() / (1.0 + RAND_MAX)) / 64, -5);
        k[i] = i % 3 ? 1 + rand() % 1000 : ((int64_t)1 << (rand() % 41)) + rand() % 3;
        memset(alone, 0, sizeof alone);
        bad += hs_step_moments_add(1, m + i, k + i, 1, alone) != HS_OK;
        bad += (i % 2 ? hs_rate_moments_of : portable_of)(
                   q[i], alone + 2 * HS_STEP_MOMENTS * (8 * (-2 - HS_STEP_LOWEST) + 3), by_rates) != HS_OK;
    }
    bad += hs_rate_moments_add(STEPS, m, q, k, 1, sums[0]) != HS_OK;
    bad += portable_rate_add(STEPS, m, q, k, 1, sums[1]) != HS_OK;
    bad += memcmp(sums[0], sums[1], sizeof sums[0]) != 0 || memcmp(sums[0], by_rates, sizeof by_rates) != 0;
    bad += hs_rate_moments_add(STEPS, m, q, k, -1, sums[0]) != HS_OK;
    for (i = 0; i < CELL; i++) bad += sums[0][i] != 0;
    bad += hs_rate_moments_of(0.25, one, sums[0]) != HS_OK; /* the lower end of a cell */
    q[0] = 1;
    return bad + (hs_rate_moments_add(1, m, q, k, 1, sums[0]) != HS_BAD_ARGUMENT);
}

int main(void)
{
    double m[STEPS];
    int64_t k[STEPS];
    int i, round, bad = 0;
    srand(7);
    for (round = 0; round < 20; round++) {
        for (i = 0; i < STEPS; i++) {
            m[i] = ldexp(1 + rand() / (1.0 + RAND_MAX), rand() % 40 - 29);
            k[i] = i % 3 ? 1 + rand() % 1000 : ((int64_t)1 << (rand() % 41)) + rand() % 3;
        }
        bad += hs_step_moments_add(STEPS, m, k, 1, one) != HS_OK || portable_add(STEPS, m, k, 1, other) != HS_OK;
        bad += memcmp(one, other, sizeof one) != 0;
        bad +=
            hs_step_moments_add(STEPS / 2, m, k, -1, one) != HS_OK || portable_add(STEPS / 2, m, k, -1, other) != HS_OK;
        bad += memcmp(one, other, sizeof one) != 0;
    }
    bad += of_rates();
    bad += hs_moments_join(-1, 2, WORDS / 2, other, one) != HS_OK;
    for (i = 0; i < WORDS; i++) bad += one[i] != 0;
    bad += portable_add(1, m, k, 2, other) != HS_BAD_ARGUMENT;
    printf("moments: %d differences\n", bad);
    return bad != 0;
}
