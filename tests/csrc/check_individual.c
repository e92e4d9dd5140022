/* check_individual.c - the individual filter and the shared tables under the sanitizers: every branch, odd sizes,
 * bad input. */
#include "hs.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #x);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const double TOP = 1e300;

static void check_charge(int64_t n, int is_float, int threads, int sticky)
{
    int64_t limit = (int64_t)1 << 50, *spent = calloc((size_t)n, 8), *other = malloc((size_t)n * 8);
    int64_t bad, i;
    uint8_t *active = malloc((size_t)n), *again = malloc((size_t)n);
    void *norms = malloc((size_t)n * (is_float ? 4 : 8));
    uint64_t sum, direct;
    hs_charge step[3];
    for (i = 0; i < 3; i++) step[i] = (hs_charge){norms, ldexp(1, -25), TOP, limit, is_float, sticky, (int)i};
    for (i = 0; i < n; i++)
        if (is_float) ((float *)norms)[i] = (float)(i % 7) / 8;
        else ((double *)norms)[i] = (double)(i % 7) / 8;
    CHECK(hs_individual_charge(n, &step[0], spent, other, again, threads, &sum, &bad) == HS_OK);
    CHECK(bad == n);
    CHECK(hs_individual_checksum(n, other, limit, threads, &direct) == HS_OK && direct == sum);
    CHECK(hs_individual_charge(n, &step[0], spent, spent, active, threads, NULL, &bad) == HS_OK);
    CHECK(!memcmp(spent, other, (size_t)n * 8) && !memcmp(active, again, (size_t)n));
    for (i = 0; i < n; i++) CHECK(spent[i] == (i % 7) * (i % 7) * (limit / 64)); /* exact: 26 bits are enough */
    for (i = 0; i < n; i++)
        if (i % 3) spent[i] = 0; /* a step that turns, done to a third before the process died */
        else spent[i] |= HS_TURN;
    CHECK(hs_individual_charge(n, &step[1], spent, NULL, NULL, threads, &sum, &bad) == HS_OK);
    CHECK(hs_individual_charge(n, &step[1], spent, spent, NULL, threads, NULL, &bad) == HS_OK);
    CHECK(hs_individual_checksum(n, spent, limit, threads, &direct) == HS_OK && direct == sum);
    for (i = 0; i < n; i++) CHECK(spent[i] == (other[i] | HS_TURN));
    CHECK(hs_individual_charge(n, &step[2], spent, spent, active, threads, NULL, &bad) == HS_OK);
    for (i = 0; i < n; i++) {
        int64_t twice = 2 * other[i] <= limit ? 2 * other[i] : other[i] | (sticky ? HS_DROPPED : 0);
        CHECK(spent[i] == twice);
        spent[i] = other[i];
    }
    if (is_float) ((float *)norms)[n - 1] = NAN;
    else ((double *)norms)[n - 1] = -1;
    CHECK(hs_individual_charge(n, &step[0], spent, spent, active, threads, NULL, &bad) == HS_BAD_ARGUMENT);
    CHECK(bad == n - 1 && !memcmp(spent, other, (size_t)n * 8));
    other[n / 2] = limit + 1;
    CHECK(hs_individual_checksum(n, other, limit, threads, &direct) == HS_OUT_OF_RANGE);
    free(spent);
    free(other);
    free(active);
    free(again);
    free(norms);
}

static void check_some(void)
{
    int64_t spent[10] = {0}, after[3], index[3] = {1, 4, 9}, bad;
    double norms[3] = {0.5, 2.0, 1.0};
    uint8_t active[3];
    uint64_t before, sum, change;
    int64_t limit = (int64_t)1 << 50;
    hs_charge step = {norms, ldexp(1, -25), TOP, limit, 0, 1, 0};
    CHECK(hs_individual_checksum(10, spent, limit, 1, &before) == HS_OK);
    CHECK(hs_individual_charge_some(10, 3, &step, index, spent, after, active, &change, &bad) == HS_OK);
    CHECK(active[0] && !active[1] && active[2] && after[0] == limit / 4 && after[1] == HS_DROPPED && after[2] == limit);
    CHECK(hs_individual_scatter(10, 3, index, after, spent) == HS_OK);
    CHECK(hs_individual_checksum(10, spent, limit, 2, &sum) == HS_OK && sum == before + change);
    index[1] = 1;
    CHECK(hs_individual_charge_some(10, 3, &step, index, spent, after, active, &change, &bad) == HS_BAD_ARGUMENT &&
          bad == 1);
    index[2] = 10;
    CHECK(hs_individual_scatter(10, 3, index, after, spent) == HS_BAD_ARGUMENT);
}

static void check_epsilons(int add)
{
    double m[2] = {1, 0.25}, q[2] = {0.01, 0.01}, k[2] = {1000, 0}, t[2] = {4, 8};
    double up[4], best[2], gap[2], first;
    int32_t counts[4] = {1000, 0, 200, 800}, which[2];
    long n_work = hs_individual_work(2);
    double *work = malloc(sizeof *work * (size_t)n_work);
    const hs_run levels = {.b = 2, .add = add, .m = m, .q = q, .k = k};
    const hs_counts two = {2, 2, counts}, one = {1, 2, counts};
    const hs_lent lent = {work, n_work, 1, NULL}, less = {work, 10, 1, NULL};
    CHECK(hs_individual_tilts(&levels, 1000, 2, t, &lent, up) == HS_OK);
    CHECK(hs_individual_tilts(&levels, 1000, 2, t, &less, up) == HS_SCRATCH);
    CHECK(hs_individual_chernoff(&two, 2, t, up, log(1e-5), &lent, best, which) == HS_OK);
    first = best[0];
    CHECK(hs_individual_group(&levels, &one, 1.1, 26, 1000, log(1e-5), &lent, best, gap) == HS_OK);
    CHECK(best[0] < first && gap[0] < 1e-3 && (add || fabs(best[0] - 1.828236666516577) < 1e-6));
    CHECK(hs_individual_group(&levels, &one, 0.5, 26, 1000, log(1e-5), &lent, best, gap) == HS_BAD_ARGUMENT);
    CHECK(hs_individual_group(&levels, &one, 1.1, 26, 1000, log(1e-5), &less, best, gap) == HS_SCRATCH);
    free(work);
}

int main(void)
{
    static const int64_t sizes[] = {1, 7, 127, 128, 129, 5000, 140000};
    unsigned i;
    int bits;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (bits = 0; bits < 8; bits++) check_charge(sizes[i], bits & 1, bits & 2 ? 3 : 1, bits >> 2);
    check_some();
    check_epsilons(0);
    check_epsilons(1);
    puts("individual: ok");
    return 0;
}
