/* lines.c - every operation of csrc off by an amplitude of its own, in the build of tests/covers.py alone: it writes a
 * call of hs_line_* in place of each sum, difference, product, quotient and root of doubles, and sets hs_line before
 * each call of a noisy function (noise.c). An operation that is exact stays exact; another is off by amplitude * u of
 * the size of its result, up or down as the amplitude's sign says. */
#include "noise.h"

#define MOST (1 << 16)
#define EXPORTED __attribute__((visibility("default")))
EXPORTED double hs_line_amplitude[MOST]; /* in units u */
EXPORTED unsigned char hs_line_reached[MOST];
EXPORTED double hs_claim_factor[MOST]; /* of HS_U at each place where it stands */
EXPORTED unsigned char hs_claim_reached[MOST];
EXPORTED int hs_line;

static double moved(double y, int line)
{
    hs_line_reached[line] = 1;
    return y + hs_line_amplitude[line] * HS_U * fabs(y);
}
double hs_line_add(double a, double b, int line)
{
    double s = a + b, t = s - a;
    if (!isfinite(s) || ((a - (s - t)) + (b - t) == 0)) return s;
    return moved(s, line);
}
double hs_line_sub(double a, double b, int line) { return hs_line_add(a, -b, line); }
double hs_line_mul(double a, double b, int line)
{
    double p = a * b;
    return !isfinite(p) || fma(a, b, -p) == 0 ? p : moved(p, line);
}
double hs_line_div(double a, double b, int line)
{
    double q = a / b;
    return !isfinite(q) || !isfinite(b) || fma(q, b, -a) == 0 ? q : moved(q, line);
}
double hs_line_sqrt(double a, int line)
{
    double r = (sqrt)(a);
    return !isfinite(r) || fma(r, r, -a) == 0 ? r : moved(r, line);
}
