/* mixed_bands.c - what nodes left out weigh where one law of a run lies on a lattice that the others do not share.
 *
 * Symbols as in mixed.c. One law, k copies, on a lattice of step s: T = 2 pi/s, x the distance of a frequency y from
 *   the nearest multiple of T; g(x) >= |phi|^k of that law at distances from x to T/2; F(y) a bound of the modulus of
 *   all other laws at frequencies from y on.
 *
 * Formula [theory: line.bands]. The nodes visited are those below Y, and those below `to` with x < X. All others are
 *   together at most (1/pi) sum over pieces [x, x + h] of [0, T/2] of g(x) times the sum of
 *       F(Y') (h/(x(x+h)) + dy/x^2)          of the piece's part beyond Y' = max(Y, min(to, X)), at its first place,
 *       F(max(Y, T - x - h)) (h + dy) W(x + h)
 *                                            of all others, W(x) = 1/(T-x)^2 + 1/(T (3T/2 - x)) + 5/(3 T^2), or
 *       F(to) (h + dy) 2 (2/to^2 + 1/(T to)) of these if to > T/2 and the piece lies below X.
 *   X is taken 1% less, since T is known to 1e-9 and `to` 1e-9 is below that.
 *
 * What it does not do: choose Y and to; more than one lattice, of which the one that varies most is taken.
 */
#include "line/mixed.h"

#define BAND_NATS 20 /* masses that round fall by some 30 nats at most, a step that falls by less has no bands */

/* By how many nats that law has fallen at distance x. */
static double fall_at(const hs_bands *bands, double x)
{ return -bands->law->k * log(hs_law_spaced_upper(bands->law, x)); }

int hs_bands_find(const hs_mixed *A, double nats, hs_bands *out)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double best = 0, most = 0, x;
    int i;
    out->law = NULL;
    for (i = 0; i < A->b; i++) {
        double var = laws[i].k * laws[i].var_upper;
        if (laws[i].kind != HS_LAW_POINTS_LOGCONCAVE || !(laws[i].spacing > 0) || !(var > best)) continue;
        best = var;
        out->law = &laws[i];
    }
    if (A->step > 0 || !out->law) return 0;
    out->T = 2 * HS_PI / out->law->spacing;
    for (x = 1 / sqrt(best); x < 0.5 * out->T; x *= 1.1) most = fmax(most, fall_at(out, x));
    nats = fmin(nats, most - 1);
    for (x = 1 / sqrt(best); x < 0.5 * out->T; x *= 1.1)
        if (fall_at(out, x) > nats) break;
    out->X = nats > BAND_NATS && x < 0.5 * out->T ? 1.02 * x : 2 * out->T; /* the latter: no node is left out */
    return 1;
}

/* The distance of y from the nearest multiple of T. */
double hs_bands_off(const hs_bands *bands, double y) { return fabs(y - bands->T * floor(y / bands->T + 0.5)); }

/* A bound of the modulus of all other laws, and of the step that smooths, at every frequency from y on. */
static double others_upper(const hs_mixed *A, const hs_bands *bands, double y)
{
    const hs_law *laws = (const hs_law *)A->laws;
    double B = 0;
    int i;
    for (i = 0; i < A->b; i++)
        if (&laws[i] != bands->law) B -= laws[i].k * log(hs_law_far_upper(&laws[i], y));
    return exp(-B - HS_SMOOTH_PART * 0.5 * A->smooth * y * y) * (1 + 1e-9);
}

/* A frequency below which all nodes are visited, or next to no multiple of T but 0. */
double hs_bands_reach(const hs_bands *bands, double to)
{
    double next = bands->T - bands->X;
    return to < 0.99 * bands->X || to > 0.5 * bands->T ? to : fmax(to, next);
}

double hs_bands_tail_upper(const hs_mixed *A, const hs_bands *bands, double Y, double to)
{
    const hs_law *w = bands->law;
    double T = bands->T * (1 - 1e-8), half = 0.5 * bands->T, first = 0.5 / sqrt(w->k * w->var_upper);
    double X = 0.99 * bands->X, sum = 0, near = others_upper(A, bands, fmax(Y, fmin(to, X)));
    double far = others_upper(A, bands, fmax(Y, 0.5 * T)),
           first_band = others_upper(A, bands, fmax(Y, fmax(0.5 * T, T - bands->X)));
    double last = others_upper(A, bands, to);
    double x, next;
    for (x = 0; x < half; x = next) {
        double g = x > 0 ? pow(hs_law_spaced_upper(w, x), w->k) : 1, at = fmax(x, fmax(Y, fmin(to, X)));
        double share, h;
        next = fmin(half * (1 + 1e-8), x > 0 ? 1.1 * x : first);
        h = next - x;
        if (next > at) sum += g * near * ((next - at) / (at * next) + A->dy / (at * at));
        share = (next <= X ? first_band : far) *
                (1 / ((T - next) * (T - next)) + 1 / (T * (1.5 * T - next)) + 5 / (3 * T * T));
        if (next <= X && to > half) share = last * 2 * (2 / (to * to) + 1 / (T * to));
        sum += g * (h + A->dy) * share;
    }
    return sum / HS_PI * (1 + 1e-6); /* [theory: line.bands] */
}
