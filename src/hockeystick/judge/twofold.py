"""The curve of two steps by one integral, where the transform of so few steps falls off too slowly for a contour.

For two steps H(eps) = E_{x ~ num_1}[H_2(eps - L_1(x))]. Let both be one branch: A = 1 - q + q e^{m x - m^2/2}, B = 1
(sampled), or B = 1 - q + q e^{-m x - m^2/2} (two-sided). H_2 is the closed form with S = [t, oo), t where A = e^e B:
for a sampled step t = log((e^e - 1 + q)/q)/m + m/2 if e^e > 1 - q, else H_2 = 1 - e^e; two-sided: u = e^{mt} is the
positive root of q k u^2 + (1-q) (1 - e^e) u - q k e^e = 0, k = e^{-m^2/2}. As L_1 rises, e^{eps - L_1(x)} > 1 - q_2 is
x < w for one w, beyond which the integral is num_1(x > w) - e^eps den_1(x > w). On the rest the integrand is analytic
and goes to Arb's rigorous quadrature; a last piece of length e^-nats before w, and what lies beyond the ends, is
bounded by 0 <= H_2 <= 1."""

from __future__ import annotations

import math

from flint import acb, arb

from .balls import UndecidedError, about, between, normal_above

MAX_EVALUATIONS = 6000


def applies(steps) -> bool:
    """Whether these are two steps of the kinds above, in the direction in which the loss rises."""
    return sum(k for _, k in steps) == 2 and all(_kind(law) is not None for law, _ in steps)


def _kind(law):
    """(m, q, two-sided) of a law, or None."""
    if len(getattr(law, "branches", ())) != 1:
        return None
    ((_, a, b),) = law.branches
    if len(a) != 2 or not a[0][1].is_zero() or not a[1][1] > 0 or not a[0][0] > 0:
        return None
    if len(b) == 1 and b[0][1].is_zero():
        return a[1][1], a[1][0], False
    mirrored = len(b) == 2 and b[1][1].is_zero() and (b[0][1] + a[1][1]).overlaps(arb(0)) and b[0][0].overlaps(a[1][0])
    return (a[1][1], a[1][0], True) if mirrored else None


def curve(steps, eps: arb, log_goal: float, deadline) -> arb:
    """A ball for H(eps), aiming at the width e^log_goal."""
    laws = [law for law, k in steps for _ in range(k)]
    (m1, q1, two1), (m2, q2, two2) = (_kind(law) for law in laws)
    price, root = eps.exp(), (2 * arb.pi()).sqrt()
    nats = max(10.0, -log_goal) + 3

    def bulge(x, q, m):
        return 1 - q + q * (m * (x - m / 2)).exp()

    def ratio(x):  # e^{-L_1}
        return (bulge(x, q1, -m1) if two1 else 1) / bulge(x, q1, m1)

    def tail(t, s):
        return normal_above(t - s)

    def second(e, analytic):  # H_2 as a function of e^e
        if two2:
            k = (-m2 * m2 / 2).exp()
            b = (1 - q2) * (1 - e) / (2 * q2 * k)
            root_u = (b * b + e).sqrt(analytic=analytic)
            u = e / (root_u + b) if b.real.mid() > 0 else root_u - b  # the form that does not cancel
            t = u.log(analytic=analytic) / m2
            return q2 * tail(t, m2) + (1 - q2) * tail(t, 0) - e * (q2 * tail(t, -m2) + (1 - q2) * tail(t, 0))
        t = ((e - 1 + q2) / q2).log(analytic=analytic) / m2 + m2 / 2
        return q2 * tail(t, m2) + (1 - q2) * tail(t, 0) - e * tail(t, 0)

    def integrand(x, analytic):
        if deadline.over():  # an exception would not stop the integral, but break it
            return acb("nan")
        return (-x * x / 2).exp() / root * bulge(x, q1, m1) * second(price * ratio(x), analytic)

    reach = arb(math.sqrt(2 * nats) + 1)
    low, high = -reach, about(m1) + reach
    total = between(0, q1 * normal_above(reach + m1) + (1 - q1) * normal_above(reach))
    if two2:
        total += between(0, q1 * normal_above(high - m1) + (1 - q1) * normal_above(high))
    else:
        # A_1 = e^eps B_1/(1 - q_2) at w
        w = _where(lambda x: 1 / ratio(x) - price / (1 - q2), low, arb(2) ** 20)
        if w is None:
            return 1 - price + price * between(0, q1 * normal_above(reach + m1) + (1 - q1) * normal_above(reach))
        total += (
            q1 * tail(w, m1)
            + (1 - q1) * tail(w, 0)
            - price * (q1 * tail(w, -m1) + (1 - q1) * tail(w, 0) if two1 else tail(w, 0))
        )
        near = arb(-nats).exp()
        total += between(0, 2 * near)
        if high > w - near:
            high = (w - near).lower()
        else:
            total += between(0, q1 * normal_above(high - m1) + (1 - q1) * normal_above(high))
    goal = arb(log_goal - 2).exp()
    found = acb.integral(integrand, low, high, abs_tol=goal, rel_tol=arb(2) ** -200, eval_limit=MAX_EVALUATIONS)
    deadline.check()
    if not found.is_finite():
        raise UndecidedError("the integral of two steps is not resolved")
    return total + found.real


def _where(f, low: arb, high: arb) -> arb | None:
    """A ball for the place where f, which rises, is 0; None where f > 0 at `low` already."""
    if f(low) > 0:
        return None
    if not f(high) > 0 or not f(low) < 0:
        raise UndecidedError("the end of the losses of two steps is not found")
    while True:
        mid = ((low + high) / 2).mid()
        value = f(mid)
        if not (low < mid < high) or not (value > 0 or value < 0):
            break
        low, high = (mid, high) if value < 0 else (low, mid)
    step = (high - low).mid() / 2**6
    for _ in range(16):
        if f((mid - step).mid()) < 0 and f((mid + step).mid()) > 0:
            return between((mid - step).mid(), (mid + step).mid())
        step = (step * 2).mid()
    return between(low, high)
