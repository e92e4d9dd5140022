/* individual.c - the individual GDP filter: one accumulator a record, charged a step at a time [KTH23, Alg. 1].
 *
 * Symbols. x_i >= 0 the record's norm at this step; scale = sigma D 2^-h rounded down (Python: individual/units.py), so
 *   that (x/scale)^2 units >= mu_i^2 in units of (D/2^h)^2; S_i units spent; limit <= 2^50 the budget; DROPPED = 2^62,
 *   TURN = 2^61.
 *
 * Formula. c_i = ceil((x_i/scale)^2);  active_i = S_i + c_i <= limit;  S_i += c_i where active. With `sticky` a refused
 *   record is marked DROPPED, which no later sum can hide: S + c > limit from then on.
 * Turns. A step over all records that is kept on file turns the bit TURN of every word: done again after a crash, it
 *   leaves those that have turned alone and does the others [theory: individual.turn].
 *
 * Error claim [theory: individual.cost, individual.units]. c_i >= (x_i/scale)^2 always, and
 *   c_i <= ceil((x_i/scale)^2 (1 + 19u)); exact where the quotient is a number of at most 26 bits: steps that fill a
 *   budget exactly are allowed. Sums are whole numbers: exact, and the same for every number of threads.
 *
 * One pass over memory: a block of norms is checked while it lies in the first-level cache, then charged; the next ones
 * are asked for early, so that memory and arithmetic overlap (a quarter of the time). If a bad norm turns up, what was
 * charged in place is taken back (costs depend on the norm alone) and the step has charged nobody.
 *
 * What it does not do: choose units, sort indices, keep files.
 */
#include "hs.h"
#include "special.h"

#define BLOCK 128 /* records of a block; with AHEAD the best of 128..4096 (benchmarks/bench_individual.py) */
#define AHEAD 512
#define CHUNKS 64
#define LEAST 65536 /* records of a thread: 1 MB of words and norms take 0.1 ms, ten times what starting it takes */
#define TWO52 4503599627370496.0
#define TOP 2251799813685248.0 /* 2^51: costs are cut there; more than any limit */

/* What becomes of a word: `mark` is set where a record is refused, `flip` always; words whose turn is `done` stay. */
typedef struct {
    int64_t limit, mark, flip, done;
} rule;

static rule rule_of(int64_t limit, int sticky, int turn)
{
    rule L = {limit, sticky ? HS_DROPPED : 0, turn ? HS_TURN : 0, turn == 1 ? HS_TURN : turn ? 0 : -1};
    return L;
}

/* What a norm is multiplied by (1/scale), and the scale in two halves of 26 bits. */
typedef struct {
    double inv, hi, lo;
} ruler;

static ruler ruler_of(double scale)
{
    double t = scale * 134217729.0; /* 2^27 + 1 */
    ruler R = {1 / scale, t - (t - scale), scale - (t - (t - scale))};
    return R;
}

/* The cost of one norm. q is off by 2u, so q^2 (1 + 12u) is above; h = q to 26 bits is the exact quotient if h scale
 * = x, products of 26-bit numbers being exact and x - h hi too, for they are close [theory: individual.cost,
 * individual.units]. */
static inline int64_t cost(double x, ruler R)
{
    double q = x * R.inv, w = q * 134217729.0, h = w - (w - q);
    double s = x - h * R.hi == h * R.lo ? h * h : q * q * (1 + 12 * HS_U), r;
    s = s < TOP ? s : TOP;
    s = s < 1 ? (x > 0 ? 1 : 0) : s;
    r = (s + TWO52) - TWO52;
    r = r < s ? r + 1 : r;
    return (int64_t)(hs_bits(r + TWO52) & 0xfffffffffffffULL);
}

static inline void costs(int count, int is_float, const void *norms, ruler R, int64_t *restrict c)
{
    const float *restrict f = (const float *)norms;
    const double *restrict d = (const double *)norms;
    int j;
    if (is_float)
        for (j = 0; j < count; j++) c[j] = cost(f[j], R);
    else
        for (j = 0; j < count; j++) c[j] = cost(d[j], R);
}

static inline int valid(int count, int is_float, const void *norms, double top)
{
    const float *restrict f = (const float *)norms;
    const double *restrict d = (const double *)norms;
    int j, bad = 0;
    if (is_float)
        for (j = 0; j < count; j++) bad |= !((f[j] >= 0) & (f[j] <= top));
    else
        for (j = 0; j < count; j++) bad |= !((d[j] >= 0) & (d[j] <= top));
    return !bad;
}

static const void *at(const void *norms, int is_float, int64_t i)
{ return is_float ? (const void *)((const float *)norms + i) : (const void *)((const double *)norms + i); }

/* A word bound to its place: a sum of these modulo 2^64 does not depend on the order, and changes with any word or
 * swap. */
static inline uint64_t hash(uint64_t word, uint64_t place)
{
    uint64_t x =
        (word ^ (place * 0x9E3779B97F4A7C15ULL)) * 0xBF58476D1CE4E5B9ULL; /* golden ratio; mixer of splitmix64 */
    x = (x ^ (x >> 31)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 29);
}

/* Prefetches one block's words and norms, AHEAD records on, while a block is computed. */
static inline void fetch(const void *norms, int is_float, const int64_t *spent, int64_t left)
{
#if defined(__GNUC__)
    int i;
    if (left < AHEAD + BLOCK) return;
    for (i = AHEAD; i < AHEAD + BLOCK; i += 8) __builtin_prefetch(spent + i, 1, 3);
    for (i = AHEAD; i < AHEAD + BLOCK; i += is_float ? 16 : 8) __builtin_prefetch(at(norms, is_float, i), 0, 3);
#else
    (void)norms;
    (void)is_float;
    (void)spent;
    (void)left;
#endif
}

static inline uint64_t hash_block(int count, const int64_t *restrict words, int64_t place)
{
    uint64_t sum = 0;
    int j;
    for (j = 0; j < count; j++) sum += hash((uint64_t)words[j], (uint64_t)(place + j));
    return sum;
}

/* A word after a step of cost c, and whether its record takes part. */
static inline int64_t word(int64_t old, int64_t c, rule L, int64_t *in)
{
    int64_t turn = old & HS_TURN, spent = old ^ turn, sum = spent + c;
    *in = sum <= L.limit;
    /* [theory: individual.turn] */
    return turn == L.done ? old : (*in ? sum : spent | L.mark) | (turn ^ L.flip);
}

/* A block of records: old words in, new words and mask out. In place, old must be a copy: the loop could not be
 * vectorised. */
static inline void apply(int count, int is_float, const void *norms, ruler R, rule L, const int64_t *restrict old,
                         int64_t *restrict after, uint8_t *restrict active)
{
    const float *restrict f = (const float *)norms;
    const double *restrict d = (const double *)norms;
    int64_t in[BLOCK];
    int j;
    if (is_float)
        for (j = 0; j < count; j++) after[j] = word(old[j], cost(f[j], R), L, &in[j]);
    else
        for (j = 0; j < count; j++) after[j] = word(old[j], cost(d[j], R), L, &in[j]);
    for (j = 0; j < count; j++) active[j] = (uint8_t)in[j];
}

static inline void take_back(int count, const int64_t *restrict c, const uint8_t *restrict active,
                             int64_t *restrict spent)
{
    int j;
    for (j = 0; j < count; j++) spent[j] -= active[j] ? c[j] : 0;
}

static int64_t first_bad(int64_t lo, int64_t hi, int is_float, const void *norms, double top)
{
    while (lo < hi && valid(1, is_float, at(norms, is_float, lo), top)) lo++;
    return lo;
}

/* The records cut into chunks of whole blocks, one a thread. */
typedef struct {
    int64_t n, per, done[CHUNKS];
    int chunks;
} cut;

static int64_t end_of(const cut *C, int i) { return i * C->per + C->per < C->n ? i * C->per + C->per : C->n; }

static void cut_into(cut *C, int64_t n, int n_threads)
{
    int64_t worth = n / LEAST + 1;
    C->n = n;
    C->chunks = n_threads < CHUNKS ? n_threads : CHUNKS;
    if (worth < C->chunks) C->chunks = (int)worth;
    C->per = ((n + C->chunks - 1) / C->chunks + BLOCK - 1) / BLOCK * BLOCK;
}

static int64_t bad_of_all(cut *C, int is_float, const void *norms, double top)
{
    int i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->chunks) schedule(static) if (C->chunks > 1)
#endif
    for (i = 0; i < C->chunks; i++) {
        int64_t j = i * C->per, hi = end_of(C, i);
        for (; j < hi; j += BLOCK)
            if (!valid((int)(hi - j < BLOCK ? hi - j : BLOCK), is_float, at(norms, is_float, j), top)) break;
        C->done[i] = j;
    }
    for (i = 0; i < C->chunks; i++)
        if (C->done[i] < end_of(C, i)) return first_bad(C->done[i], C->n, is_float, norms, top);
    return C->n;
}

static void undo(const cut *C, int is_float, const void *norms, double scale, const uint8_t *active, int64_t *spent)
{
    int i;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C->chunks) schedule(static) if (C->chunks > 1)
#endif
    for (i = 0; i < C->chunks; i++) {
        int64_t c[BLOCK], j = i * C->per, hi = C->done[i] < end_of(C, i) ? C->done[i] : end_of(C, i);
        for (; j < hi; j += BLOCK) {
            int count = (int)(hi - j < BLOCK ? hi - j : BLOCK);
            costs(count, is_float, at(norms, is_float, j), ruler_of(scale), c);
            take_back(count, c, active + j, spent + j);
        }
    }
}

/* Charge records lo..hi-1; returns hi, or the first record of the first block with a bad norm. */
HS_CLONES static int64_t sweep(int64_t lo, int64_t hi, const hs_charge *step, const int64_t *spent, int64_t *after,
                               uint8_t *active, uint64_t *sum)
{
    const rule L = rule_of(step->limit, step->sticky, step->turn);
    const ruler R = ruler_of(step->scale);
    const void *norms = step->norms;
    const int is_float = step->is_float;
    int64_t old[BLOCK], fresh[BLOCK], j;
    uint8_t in[BLOCK];
    uint64_t total = 0;
    for (j = lo; j < hi; j += BLOCK) {
        int count = (int)(hi - j < BLOCK ? hi - j : BLOCK);
        int64_t *out = after ? after + j : fresh;
        fetch(at(norms, is_float, j), is_float, spent + j, hi - j);
        if (!valid(count, is_float, at(norms, is_float, j), step->top)) return j;
        memcpy(old, spent + j, sizeof *old * (size_t)count);
        apply(count, is_float, at(norms, is_float, j), R, L, old, out, active ? active + j : in);
        if (sum) total += hash_block(count, out, j);
    }
    if (sum) *sum = total;
    return hi > lo ? hi : lo;
}

/* One step over all n records. spent may be after: then nothing is charged unless every norm is good (a mark or a
 * turn cannot be taken back, so all norms are looked at first). after, active and checksum may be NULL: a look
 * without a change. On HS_BAD_ARGUMENT *bad is the first bad record. */
int hs_individual_charge(int64_t n, const hs_charge *step, const int64_t *spent, int64_t *after, uint8_t *active,
                         int n_threads, uint64_t *checksum, int64_t *bad)
{
    uint64_t sum[CHUNKS];
    int lasting = step->sticky || step->turn, i;
    cut C;
    if (!(n >= 0 && step->scale > 0 && step->top >= 0 && n_threads > 0)) return HS_BAD_ARGUMENT;
    if (!(active || step->turn || spent != after)) return HS_BAD_ARGUMENT;
    cut_into(&C, n, n_threads);
    *bad = lasting && spent == after ? bad_of_all(&C, step->is_float, step->norms, step->top) : n;
    if (*bad < n) return HS_BAD_ARGUMENT;
#ifdef _OPENMP
#pragma omp parallel for num_threads(C.chunks) schedule(static) if (C.chunks > 1)
#endif
    for (i = 0; i < C.chunks; i++)
        C.done[i] = sweep(i * C.per, end_of(&C, i), step, spent, after, active, checksum ? &sum[i] : NULL);
    if (checksum)
        for (*checksum = 0, i = 0; i < C.chunks; i++) *checksum += sum[i];
    for (i = C.chunks - 1; i >= 0; i--)
        if (C.done[i] < end_of(&C, i)) *bad = first_bad(C.done[i], n, step->is_float, step->norms, step->top);
    if (*bad == n) return HS_OK;
    if (spent == after) undo(&C, step->is_float, step->norms, step->scale, active, after);
    return HS_BAD_ARGUMENT;
}

/* One step over m of n records: index strictly increasing. after[j] is the new word of record index[j]; nothing is
 * stored in spent (hs_individual_scatter does). *change is what the checksum of all records gains. *bad: first bad
 * position. */
int hs_individual_charge_some(int64_t n, int64_t m, const hs_charge *step, const int64_t *index, const int64_t *spent,
                              int64_t *after, uint8_t *active, uint64_t *change, int64_t *bad)
{
    int64_t old[BLOCK], j, i, last = -1;
    int is_float = step->is_float;
    rule L = rule_of(step->limit, step->sticky, 0);
    ruler R = ruler_of(step->scale);
    if (!(m >= 0 && m <= n && step->scale > 0 && step->top >= 0)) return HS_BAD_ARGUMENT;
    *bad = m;
    *change = 0;
    for (j = 0; j < m; j += BLOCK) {
        int count = (int)(m - j < BLOCK ? m - j : BLOCK);
        const void *x = at(step->norms, is_float, j);
        for (i = 0; i < count && index[j + i] > last && index[j + i] < n; i++) last = index[j + i];
        if (i < count || !valid(count, is_float, x, step->top)) {
            *bad = j + (i < count ? i : first_bad(0, count, is_float, x, step->top));
            return HS_BAD_ARGUMENT;
        }
        for (i = 0; i < count; i++) old[i] = spent[index[j + i]];
        apply(count, is_float, x, R, L, old, after + j, active + j);
        for (i = 0; i < count; i++)
            *change +=
                hash((uint64_t)after[j + i], (uint64_t)index[j + i]) - hash((uint64_t)old[i], (uint64_t)index[j + i]);
    }
    return HS_OK;
}

/* spent[index[j]] = words[j]. HS_BAD_ARGUMENT (and nothing stored) if an index is out of range. */
int hs_individual_scatter(int64_t n, int64_t m, const int64_t *index, const int64_t *words, int64_t *spent)
{
    int64_t j;
    for (j = 0; j < m; j++)
        if (index[j] < 0 || index[j] >= n) return HS_BAD_ARGUMENT;
    for (j = 0; j < m; j++) spent[index[j]] = words[j];
    return HS_OK;
}

/* The checksum of all words; HS_OUT_OF_RANGE if one of them is no state of a record. */
int hs_individual_checksum(int64_t n, const int64_t *spent, int64_t limit, int n_threads, uint64_t *checksum)
{
    uint64_t sum[CHUNKS];
    int wrong[CHUNKS], i, any = 0;
    cut C;
    if (!(n >= 0 && n_threads > 0)) return HS_BAD_ARGUMENT;
    cut_into(&C, n, n_threads);
#ifdef _OPENMP
#pragma omp parallel for num_threads(C.chunks) schedule(static) if (C.chunks > 1)
#endif
    for (i = 0; i < C.chunks; i++) {
        int64_t j = i * C.per, hi = end_of(&C, i), k;
        for (sum[i] = 0, wrong[i] = 0; j < hi; j += BLOCK) {
            int count = (int)(hi - j < BLOCK ? hi - j : BLOCK);
            sum[i] += hash_block(count, spent + j, j);
            for (k = j; k < j + count; k++)
                wrong[i] |= (uint64_t)(spent[k] & ~(HS_DROPPED | HS_TURN)) > (uint64_t)limit;
        }
    }
    for (*checksum = 0, i = 0; i < C.chunks; i++) {
        *checksum += sum[i];
        any |= wrong[i];
    }
    return any ? HS_OUT_OF_RANGE : HS_OK;
}
