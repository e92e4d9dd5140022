"""Base losses: those of Gaussian, Laplace, Gaussian-mixture and atomic pairs, and of a user's distribution functions.

Each function proves the error that its `Tails` state, in its docstring. u = 2^-53.
"""

from __future__ import annotations

import math

import numpy as np

from . import _core
from .bound import DomainError
from .loss import COARSE_NODES, GAUSSIAN, LAPLACE, Additive, Atoms, Loss, Tails, U, additive_loss, nodes_of_tails, two_points

LDBL_ULP = float(np.finfo(np.longdouble).eps)


def gaussian_loss(m: float, q: float = 1.0, back: bool = False) -> Loss:
    """N(m, 1) against N(0, 1): Y ~ N(m^2/2, m^2), X ~ N(-m^2/2, m^2) [GLW21, Prop. B.1]; sampled, turned round."""
    return additive_loss(Additive(GAUSSIAN, m, q, float(back)))


def laplace_loss(m: float, q: float = 1.0, back: bool = False) -> Loss:
    """Laplace noise moved by m scales; X = -Y in law [GLW21, Prop. B.2]; sampled, turned round."""
    return additive_loss(Additive(LAPLACE, m, q, float(back)))


def gaussian_mixture_loss(m: np.ndarray, p: np.ndarray) -> Loss:
    """sum_i p_i N(m_i, 1) against N(0, 1), m_i >= 0: l(x) = log sum_i p_i e^{m_i x - m_i^2/2}, convex and increasing in x.

    x(s) by Newton's method from the right, where it falls monotonically; the edge is moved by what is left of l(x) - s and by
    the rounding of l, 8u(1 + |s| + max m (|x| + m)). Pr[Y <= s] = sum_i p_i Phi(x - m_i).
    """
    still = float(p[m == 0].sum())
    top = float(m.max())
    weight = float(p[m == top].sum())
    lo = math.log(still) if still else -math.inf

    def loss_at(x):
        terms = np.multiply.outer(x, m) + (np.log(p) - 0.5 * m * m)
        peak = terms.max(axis=-1)
        parts = np.exp(terms - peak[..., None])
        total = parts.sum(axis=-1)
        return peak + np.log(total), (parts * m).sum(axis=-1) / total

    def tails(s):
        inside = s > lo + 16 * U * (1 + abs(lo)) if still else np.ones(s.shape, dtype=bool)
        first = int(np.searchsorted(inside, True))
        s, pad = s[first:], np.zeros(first)
        x = (s - math.log(weight)) / top + 0.5 * top  # l(x) >= the top term alone, so this x is to the right of the root
        for _ in range(100):
            value, slope = loss_at(x)
            step = (value - s) / np.maximum(slope, 1e-300)
            x = np.maximum(x - step, -60.0 - top)
            if not np.any(np.abs(step) > 1e-13 * (1 + np.abs(x))):
                break
        value, slope = loss_at(x)
        x = np.maximum.accumulate(x) if x.size else x
        ok = x > -60.0 - top
        left = np.where(ok, np.abs(value - s), 0.0)
        edge = float((left + 16 * U * (1 + np.abs(s) + slope * (np.abs(x) + top))).max(initial=0.0))
        x_below, x_above = _core.normal_tails(x)
        y = [_core.normal_tails(x - mean) for mean in m]
        y_below, y_above = (sum(w * t[i] for w, t in zip(p, y, strict=True)) for i in (0, 1))
        size = np.abs(x) + top
        return Tails(
            np.r_[pad, y_below],
            np.r_[pad + 1, y_above],
            np.r_[pad, x_below],
            np.r_[pad + 1, x_above],
            np.r_[pad + 8 * U, U * (24 + 8 * (size + 1) * (size + 1))],
            edge + (32 * U * (1 + abs(lo)) if first else 0.0),
        )

    def nodes(prob):
        reach = math.sqrt(2 * max(1.0, -math.log(prob))) + 0.5
        x, dx = np.linspace(-reach, top + reach, math.ceil((2 * reach + top) * min(max(1.0, top), 8.0) / 0.2), retstep=True)
        return loss_at(x)[0], -0.5 * x * x + math.log(dx / math.sqrt(2 * math.pi))

    return Loss(tails, nodes, lo)


def atomic_loss(loss, num, den, *, edge: float, rel, lattice=None, mass_inf=0.0, mass_minus_inf=0.0, absolute=0.0) -> Loss:
    """Atoms at increasing `loss` (each within `edge`) of masses num > 0, den > 0, each within `rel` (one number, or one an
    atom) relative and `absolute`. Sums run from both ends in long double, so that either tail keeps its relative accuracy.
    """
    loss, num, den = (np.ascontiguousarray(a, dtype=float) for a in (loss, num, den))
    sums, worst = [], np.full(loss.size + 1, np.max(rel, initial=0.0) if np.ndim(rel) == 0 else 0.0)
    for mass in (num, den):
        below, above = _sums(mass)
        sums += [below, above]
        if np.ndim(rel):
            for whole, part in zip((below, above), _sums(mass * rel), strict=True):
                worst = np.maximum(worst, np.divide(part, whole, out=np.zeros(whole.size), where=whole > 0))
    y_below, y_above, x_below, x_above = sums
    masses = max(64 * U, float(np.max(rel, initial=0.0)))
    worst += 4 * U + loss.size * LDBL_ULP

    def tails(s):
        i = np.searchsorted(loss, s, side="right")
        return Tails(y_below[i], y_above[i], x_below[i], x_above[i], worst[i], edge, absolute * loss.size)

    def nodes(_):
        if loss.size <= COARSE_NODES:
            return loss, np.log(den)
        first = np.unique(np.linspace(0, loss.size - 1, COARSE_NODES).astype(int))
        ys, xs = np.add.reduceat(num, first), np.add.reduceat(den, first)
        ok = (ys > 0) & (xs > 0)
        return np.log(ys[ok] / xs[ok]), np.log(xs[ok])

    return Loss(
        tails,
        nodes,
        float(loss[0]) if loss.size else math.inf,
        float(loss[-1]) if loss.size else -math.inf,
        mass_inf,
        mass_minus_inf,
        lambda: Atoms(loss, num, den, masses),
        lambda: lattice or (two_points(loss, num, den) if masses == 64 * U else None),
        smooth=False,
    )


def _sums(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the first i entries and of all but these, i = 0..n."""
    below = np.cumsum(mass, dtype=np.longdouble).astype(float)
    above = np.cumsum(mass[::-1], dtype=np.longdouble)[::-1].astype(float)
    return np.r_[0.0, below], np.r_[above, 0.0]


def user_probabilities(name: str, f, s: np.ndarray, mass: float, error: float) -> np.ndarray:
    """f(s) of a user's distribution function ("sf_..": falling) at increasing s, `mass` of the law being infinite.

    Raises
    ------
    DomainError
        That names a loss where f is no probability, or the neighbours between which it falls (rises).
    """
    try:
        out = np.asarray(f(s.copy()), dtype=float)
    except (TypeError, ValueError) as problem:
        raise DomainError(f"{name} must map an array of losses to an array of probabilities: {problem}") from None
    if out.shape != s.shape:
        raise DomainError(f"{name} must return an array of the shape of its argument {s.shape}, got {out.shape}")
    slack, rises = 2 * error + 2.0**-50, not name.startswith("sf")
    for i in np.flatnonzero(~((out >= -slack) & (out <= 1 - mass + slack)))[:1]:
        raise DomainError(f"{name} must return probabilities in [0, {1 - mass:g}], got {float(out[i])!r} at s={float(s[i])!r}")
    for i in np.flatnonzero(~((1 if rises else -1) * np.diff(out) >= -slack))[:1]:
        raise DomainError(
            f"{name} must not {'fall' if rises else 'rise'}, got {float(out[i])!r} at s={float(s[i])!r}, "
            f"{float(out[i + 1])!r} at s={float(s[i + 1])!r}"
        )
    return out


def cdf_loss(
    cdf_num, cdf_den, sf_num, sf_den, lo: float, hi: float, mass_inf: float, mass_minus_inf: float, error: float
) -> Loss:
    """A user's distribution functions of finite Y and X: absolute error `error` claimed by the user, one u added here.

    `sf_*` may be None; then 1 - mass - cdf stands in, which is as good in absolute terms.
    """

    def law(which, cdf, sf, mass, s):
        inside = np.clip(s, lo, hi)
        below = user_probabilities("cdf_" + which, cdf, inside, mass, error)
        below = np.where(s < lo, 0.0, np.where(s >= hi, 1 - mass, below))
        if sf is None:
            above = 1 - mass - below
        else:
            above = user_probabilities("sf_" + which, sf, inside, mass, error)
            above = np.where(s < lo, 1 - mass, np.where(s >= hi, 0.0, above))
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def tails(s):
        y_below, y_above = law("num", cdf_num, sf_num, mass_inf, s)
        x_below, x_above = law("den", cdf_den, sf_den, mass_minus_inf, s)
        return Tails(y_below, y_above, x_below, x_above, np.full(s.shape, 8 * U), 0.0, error + 2 * U)

    return Loss(tails, lambda p: nodes_of_tails(tails, lo, hi, max(p, 8 * error)), lo, hi, mass_inf, mass_minus_inf)
