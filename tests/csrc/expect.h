/* expect.h - counted expectations of the checks: what failed is printed with three numbers that tell where. */
#include <stdio.h>

static int failures;
static long calls;

static void expect(int good, const char *what, double a, double b, double c)
{
    calls++;
    if (good) return;
    printf("FAIL %s: %g %g %g\n", what, a, b, c);
    failures++;
}
