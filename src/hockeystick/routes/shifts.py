"""K(t) of Gaussian noise around a random shift, sampled or not, by quadrature in the noise with proved errors
[theory: law.shifts].

In units of the noise: num/den at x is r(x) = sum_j w_j e^(v_j), v_j = s_j x - s_j^2/2, shifts s_j >= 0, weights of sum
1 (sampling at rate q is a shift 0 of weight 1-q), and M = E r(x)^a under the normal law, a = 1+t (REMOVE) or -t (ADD).
As in cumulant.py, M - 1 = E f, f = (1+u)^a - 1 - a u >= 0, u = r - 1, where M is moderate; else r^a, scaled. L = log r
is convex, increasing, of slope at most s = max s_j; g = a L - x^2/2.

Where the mass lies. a > 0: on a cell of length d, g <= its larger end + d^2/8, for a L lies below its chord and x^2/2
at most d^2/8 below its own; left of -R and right of a s + R, |g'| >= R. a < 0: g is concave, g'' <= -1: at most g(x) +
g'(x)^2/2 everywhere, and beyond a point where it falls, e^g has at most sqrt(pi/2) of its value there. f <= r^a + |a|
for a > 0 and <= r^a + t r for a < 0 tell what the other terms of f add outside.

Quadrature. Gauss-Legendre panels of half-length s0 <= min(1, 1/s)/2: (64/15) s0 F rho^-62/(1-rho^-2) a panel [Tre13,
Thm 19.3], ellipse of semi-axes pi s0 and sqrt(1+pi^2) s0. There all v_j turn by angles between 0 and pi s s0 <= pi/2,
so |r| lies between cos(pi s s0/2) r(Re x) and r(Re x), and |normal density| <= e^((pi s0)^2/2) times itself. (1 + 2|a|)
covers the other terms of f, as r times the normal density is at most 1/sqrt(2 pi).

Rounding. x is off by 6 units of the range, v_j by s_j times that and 6 units of its terms (s_j by 4); where |u| < 1/2,
u is known through the shifts that move alone, and L = log1p(u), so that the error of f stays of second order in u."""

from __future__ import annotations

import math

import numpy as np

from ..gauss import legendre_rule
from ..outward import UP, U
from .loss_steps import RULE

RHO = 6.43834
"""Below pi + sqrt(1 + pi^2) = 6.438499."""

UNIT = 64 / 15 * RHO**-62 / (1 - RHO**-2) * (1 + 1e-9)
LARGE = 30.0
"""Log of the largest term from which on M is summed without its terms of first order."""

DROPPED = 60.0
"""Nats below the largest cell at which one is bounded and not summed."""

MOST = 1 << 23
"""Most terms: nodes times shifts."""


class _Ratio:
    """r and its logarithm."""

    def __init__(self, shifts, probabilities, q: float):
        s, w = np.array(shifts), q * np.array(probabilities)
        rest = 1 - q + float(w[s == 0].sum())
        self.s, self.w = s[s > 0], w[s > 0]
        self.all_s, self.log_w = self.s, np.log(self.w)
        if rest > 0:
            self.all_s, self.log_w = np.append(self.s, 0.0), np.append(self.log_w, math.log(rest))
        self.top = float(self.s.max())
        self.size = self.all_s.size

    def at(self, x):
        """(u, sum w |e^v - 1|, sum w s e^v, L) at an array of x."""
        e = np.expm1(np.minimum(np.multiply.outer(x, self.s) - 0.5 * self.s**2, 700.0))
        v = np.multiply.outer(x, self.all_s) + (self.log_w - 0.5 * self.all_s**2)
        most = v.max(axis=-1)
        u, L = e @ self.w, most + np.log(np.exp(v - most[..., None]).sum(axis=-1))
        return (
            u,
            np.abs(e) @ self.w,
            (e + 1) @ (self.w * self.s),
            np.where(np.abs(u) < 0.5, np.log1p(np.clip(u, -0.5, 0.5)), L),
        )

    def g(self, a: float, x):
        return a * self.at(np.asarray(x, dtype=float))[3] - 0.5 * np.square(x)

    def slope(self, a: float, x: float) -> float:
        v = x * self.all_s + self.log_w - 0.5 * self.all_s**2
        e = np.exp(v - v.max())
        return a * float(e @ self.all_s) / float(e.sum()) - x


def cumulant(shifts, probabilities, q: float, a: float, convex):
    """(total, error, top): M - 1 = total within error where top is None, else log M = top + log total; None where it
    takes too many nodes. convex(u, L, a) = f."""
    r = _Ratio(shifts, probabilities, q)
    R = math.sqrt(2 * (DROPPED - 4 * math.log(min(1.0, float(r.w.sum()) * r.top))))
    made = _right(r, a, R) if a > 0 else _left(r, a, R)
    if made is None:
        return None
    centres, s0, top, outside, scaled = made
    if centres.size * 32 * r.size > MOST:
        return None
    nodes, weights = legendre_rule(RULE)
    x = centres[:, None] + s0 * nodes
    span, half = float(np.abs(centres).max()) + r.top, 0.5 * x * x
    u, size, moving, L = r.at(x)
    g = a * L - half
    far = a * L > 300  # 1 + a u is below e^-200 of the rest there
    dx = U * (12 * span + 6 * r.top)
    by_u = (moving * dx + 8 * U * size) * np.exp(-np.clip(L, -700.0, 700.0)) + 2 * U * np.abs(L)
    dL = np.where(np.abs(u) < 0.5, by_u, r.top * dx + 8 * r.size * U + 14 * U * np.abs(L))
    weights = s0 * weights
    base = U * (40 + 6 * half + 8 * np.abs(x) * span + abs(a) * 4 * np.abs(L))
    if scaled:
        terms = weights * np.exp(g - top)
        error = float((terms * (base + abs(a) * dL)).sum())
        beyond = UNIT * s0 * centres.size * _turned(r, a, s0)  # [theory: law.shifts]
    else:
        near = np.where(far, 0.0, L)
        terms = weights * np.where(
            far, np.exp(np.where(far, g, 0.0)), np.exp(-half) * convex(np.where(far, 0.0, u), near, a)
        )
        with np.errstate(over="ignore"):
            rise = (a - 1) * near
            steep = np.where(
                far | (rise > 1),
                np.exp(np.where(far, g, a * near - half)) * np.where(far, 1.0, -np.expm1(-np.maximum(rise, 1.0))),
                np.exp(near - half) * np.abs(np.expm1(np.minimum(rise, 1.0))),
            )
        error = float((terms * (base + 64 * U) + weights * steep * abs(a) * dL).sum())
        beyond = (
            UNIT * s0 * centres.size * (math.exp(top) * _turned(r, a, s0) + (1 + 2 * abs(a)) * math.exp(5 * s0 * s0))
        )
    total = math.fsum(terms.sum(axis=1).tolist())
    error = (error + 64 * U * total + beyond + outside) * (1 + 1e-9)
    root = math.sqrt(2 * math.pi)
    return total / root, error / root, top if scaled else None


def _turned(r: _Ratio, a: float, s0: float) -> float:
    """What |e^g| on the ellipse may exceed its largest real value by."""
    grow = math.exp(0.5 * (math.pi * s0) ** 2)
    return grow * math.cos(0.5 * math.pi * r.top * s0) ** a if a < 0 else grow


def _right(r: _Ratio, a: float, R: float):
    """a > 0: (centres of the cells summed, half-length, a bound of g, what lies outside, whether scaled)."""
    s0 = 0.5 * min(1.0, 1 / r.top)
    lo, hi = -R, a * r.top + R
    count = math.ceil((hi - lo) / (2 * s0))
    if count * r.size > MOST:
        return None
    ends = lo + (hi - lo) / count * np.arange(count + 1)
    s0 = 0.5 * (hi - lo) / count
    g = r.g(a, ends)
    room = 1e-12 * (1 + float(np.abs(a * r.at(ends[-1:])[3]).max()))
    bound = np.maximum(g[1:], g[:-1]) + 0.5 * s0 * s0 + room
    top = float(bound.max())
    scaled = top > LARGE
    if scaled:
        keep, unit = bound >= top - DROPPED - math.log(count), bound - top
        tails = (math.exp(g[0] - top) + math.exp(g[-1] - top)) / R
    else:
        nearest = np.minimum(np.abs(ends[1:]), np.abs(ends[:-1])) * (np.sign(ends[1:]) == np.sign(ends[:-1]))
        unit = np.logaddexp(bound, math.log(a) - 0.5 * nearest**2)
        keep = unit >= -0.5 * R * R - math.log(count)
        tails = (math.exp(g[0]) + math.exp(g[-1]) + 2 * a * math.exp(-0.5 * R * R)) / R
    outside = 2 * s0 * float(np.exp(unit[~keep]).sum()) + tails
    return (ends[:-1] + s0)[keep], s0 * UP, top, outside * (1 + 1e-6), scaled


def _left(r: _Ratio, a: float, R: float):
    """The same for a < 0."""
    t = -a
    lo, hi = -t * r.top, 0.0
    for _ in range(80):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if r.slope(a, middle) > 0 else (lo, middle)
    peak, tilt = hi, abs(r.slope(a, hi))
    top = float(r.g(a, np.array([peak]))[0]) + 0.5 * tilt * tilt
    top += 1e-12 * (1 + abs(top) + peak * peak)
    reach = 12.0 + 2 * tilt
    while r.g(a, np.array([peak - 0.5 * reach, peak + 0.5 * reach])).max() < top - DROPPED and reach > 4 * tilt:
        reach *= 0.5
    lo, hi = peak - reach, peak + reach
    scaled = top > LARGE
    if not scaled:
        lo, hi = min(lo, -R), max(hi, r.top + R)
    s0 = min(0.5, 0.5 / r.top, 2 / (r.top * math.sqrt(t)))
    count = math.ceil((hi - lo) / (2 * s0))
    if count * 32 * r.size > MOST:
        return None
    s0 = 0.5 * (hi - lo) / count
    unit = top if scaled else 0.0
    tails = 1.26 * float(np.exp(r.g(a, np.array([lo, hi])) - unit).sum()) * (1 + 1e-9)
    if not scaled:
        tails += t * math.exp(-0.5 * (hi - r.top) ** 2) / (hi - r.top)
    return lo + s0 * (2 * np.arange(count) + 1), s0, top, tails, scaled
