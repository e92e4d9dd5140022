/* mills.c - Mills' ratio q(z) = e^{z^2/2} int_z^inf e^{-y^2/2} dy for z > -38, and a bound of its relative error.
 *
 * Below 10 by erfc: its argument z/sqrt 2 is off by 1.5u, which is (z^2 + 2|z| + 1) 1.5u of the value; z^2/2 by u z^2;
 * erfc and exp by at most 16u. From 10 on by Laplace's continued fraction to depth 12 [theory: saddle.mills], 2u a
 * step, each damped by n/r^2 < 0.12.
 */
#include "law/transform.h"

double hs_mills(double z, double *rel_err)
{
    double r;
    int n;
    if (z < 10) {
        *rel_err = HS_U * (2.5 * z * z + 3 * fabs(z) + 24);
        return 1.25331413731550025121 * exp(0.5 * z * z) * erfc(z * HS_SQRT_HALF);
    }
    for (r = z + 6.5 / z, n = 12; n > 0; n--) r = z + n / r;
    *rel_err = 8 * HS_U;
    return 1 / r;
}
