/* check_step_moments.c - sums of step_moments.c: products by 128-bit integers, where the compiler has them, and by halves are the same
 * bit for bit; what is added is taken away again. */
#include <stdio.h>
#include <stdlib.h>

#define HS_NO_INT128
#define hs_step_moments_add portable_add
#define hs_step_moments_join portable_join
#define hs_step_moments_read portable_read
#include "step_moments.c"
#undef hs_step_moments_add
#undef hs_step_moments_join
#undef hs_step_moments_read
int hs_step_moments_add(int64_t n, const double *m, const int64_t *k, int sign, uint64_t *sums);
int hs_step_moments_join(int sign, const uint64_t *others, uint64_t *sums);

enum { STEPS = 1000, WORDS = 2 * HS_STEP_MOMENTS * HS_STEP_BOXES };

static uint64_t one[WORDS], other[WORDS];

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
    hs_step_moments_join(-1, other, one);
    for (i = 0; i < WORDS; i++) bad += one[i] != 0;
    bad += portable_add(1, m, k, 2, other) != HS_BAD_ARGUMENT;
    printf("moments: %d differences\n", bad);
    return bad != 0;
}
