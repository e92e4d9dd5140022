"""Base losses: those of Gaussian, Laplace, Gaussian-mixture and atomic pairs, and of a user's distribution functions.

Each function proves the error that its `Tails` state, in its docstring. u = 2^-53.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._core import LAPLACE, NORMAL
from ..bound import DomainError
from ..outward import LDBL_ULP, U
from .loss import (
    COARSE_NODES,
    TINY,
    Additive,
    Atoms,
    Loss,
    Tails,
    additive_loss,
    nodes_of_tails,
    two_points,
)

WELL_KNOWN = 1e-9
"""Largest relative error of masses with which the contour of a lattice is worth a try."""

FAR = 45.0
"""Deviations beyond which normal laws have no probability in doubles."""

EVERY = 64
"""Arguments of a mixture's tails from one to the next that is solved from afar; chords between these start the
others."""


def gaussian_loss(m: float, q: float = 1.0, back: bool = False) -> Loss:
    """N(m, 1) against N(0, 1): Y ~ N(m^2/2, m^2), X ~ N(-m^2/2, m^2) [GLW21, Prop. B.1] [theory: law.gaussian-tails];
    sampled, turned round."""
    return additive_loss(Additive(NORMAL, m, q, float(back)))


def laplace_loss(m: float, q: float = 1.0, back: bool = False) -> Loss:
    """Laplace noise moved by m scales; X = -Y in law [GLW21, Prop. B.2]; sampled, turned round."""
    return additive_loss(Additive(LAPLACE, m, q, float(back)))


def gaussian_mixture_loss(m: np.ndarray, p: np.ndarray, log_p: np.ndarray, off_upper=np.zeros_like) -> Loss:
    """sum_i p_i N(m_i, 1) against N(0, 1), m_i >= 0: l(x) = log sum_i p_i e^{m_i x - m_i^2/2}, convex and increasing in
    x [theory: law.shift-tails].

    x(s) by Newton's method from the right, where it falls monotonically, at every EVERY-th s, and from their chords,
    where the first step ends to the right. The edge is moved by what is left of l(x) - s, whatever x, and by the
    rounding of l (_log_mixture), LOG_MIXTURE (1 + |s| + l' (|x| + max m)). Pr[Y <= s] = sum_i p_i Phi(x - m_i). These m
    and p may stand for others whose l(x) is off_upper(x) away at most [theory: law.condensed]; where |x| > FAR + max m
    both laws have probabilities below every double.

    The end lo = log p_0: the weights p are within (5n + 4)u (loss.py: mixture), so log p_0 by (5n + 6)u + 2u|lo|; where
    p_0 > 1/2 it is log1p(-rest), which they move by 2 (5n + 5)u |lo|.
    """
    still = m == 0
    top = float(m.max())
    log_top = float(np.logaddexp.reduce(log_p[m == top]))
    lo = float(np.logaddexp.reduce(log_p[still], initial=-math.inf))
    lo = math.log1p(-float(p[~still].sum())) if lo > math.log(0.5) else lo
    lo_error = (6 * p.size + 10) * U * (min(1.0, 2 * abs(lo)) + abs(lo)) if still.any() else 0.0
    near = 5e-15 * (1 + abs(lo))  # no losses are told from lo: the edge has it, whatever it is

    def root_at(s, x):
        # l(x) >= the top term alone, so this x is to the right of the root
        end = (s - log_top) / top + 0.5 * top
        x, left = np.minimum(x, end), np.arange(s.size)
        for _ in range(100):
            value, slope = _log_mixture(x[left], m, log_p)
            off = value - s[left]
            step = off / np.maximum(slope, 1e-300)
            x[left] = np.maximum(np.minimum(x[left] - step, end[left]), -60.0 - top)
            left = left[(np.abs(step) > 1e-13 * (1 + np.abs(x[left]))) & (np.abs(off) > 4e-15 * (1 + np.abs(s[left])))]
            if not left.size:
                break
        return x

    def tails(s):
        inside = s > lo + near if still.any() else np.ones(s.shape, dtype=bool)
        first, last = int(np.searchsorted(inside, True)), int(np.searchsorted(s, math.inf))  # no loss is above +inf
        pad, beyond, s = np.zeros(first), np.zeros(s.size - max(first, last)), s[first : max(first, last)]
        x = root_at(s, _chords(root_at, s, math.inf))
        value, slope = _log_mixture(x, m, log_p)
        x = np.maximum.accumulate(x) if x.size else x
        ok = x > -60.0 - top
        left = np.where(ok, np.abs(value - s), 0.0)
        own = np.where(np.abs(x) <= FAR + top, off_upper(x), 0.0)
        edge = float((left + own + LOG_MIXTURE * (1 + np.abs(s) + slope * (np.abs(x) + top))).max(initial=0.0))
        x_below, x_above = _core.normal_tails(x)
        y_below, y_above = _mixture_tails(x, m, p)
        return Tails(
            np.r_[pad, y_below, beyond + 1],
            np.r_[pad + 1, y_above, beyond],
            np.r_[pad, x_below, beyond + 1],
            np.r_[pad + 1, x_above, beyond],
            np.r_[pad, _mixture_error(x, top, p.size), beyond] + 8 * U + 1.1 * float(off_upper(FAR + top)),
            edge + (2 * (near + lo_error) if first else 0.0),
            TINY * (1 + p.size),
        )

    def nodes(prob):
        x, log_mass = _mixture_nodes(prob, 0.0, float(m[p >= prob].max(initial=0.0)))
        return _log_mixture(x, m, log_p)[0], log_mass

    return Loss(tails, nodes, lo, ends_error=lo_error)


def opposite_mixtures_loss(m: np.ndarray, p: np.ndarray, log_p: np.ndarray) -> Loss:
    """sum_i p_i N(m_i, 1) against sum_i p_i N(-m_i, 1), m_i >= 0, its own mirror image: L(x) = l(x) - l(-x), l as in
    gaussian_mixture_loss, odd and increasing.

    x(|s|) by Newton's method within a bracket, [0, (s - log p_top)/top + top/2], as l(-x) <= 0 <= x. The edge is moved
    by what is left of L(x) - |s| and by the rounding of both logarithms. Pr[Y <= s] = sum_i p_i Phi(x - m_i), Pr[X <=
    s] = sum_i p_i Phi(x + m_i)."""
    top = float(m.max())
    log_top = float(np.logaddexp.reduce(log_p[m == top]))

    def loss_at(x):
        (up, rise), (down, fall) = _log_mixture(x, m, log_p), _log_mixture(-x, m, log_p)
        return up - down, rise + fall, np.abs(up) + np.abs(down)

    def root_at(s, x):
        low, high = np.zeros(s.size), np.maximum((s - log_top) / top + 0.5 * top, 0.0)
        x, left = np.clip(x, low, high), np.arange(s.size)
        for _ in range(200):
            at = x[left]
            value, slope, _ = loss_at(at)
            off = value - s[left]
            far = np.abs(off) > 4e-15 * s[left]
            left, at, off, slope = left[far], at[far], off[far], slope[far]
            if not left.size:
                break
            low[left], high[left] = np.where(off < 0, at, low[left]), np.where(off > 0, at, high[left])
            new = at - off / np.maximum(slope, 1e-300)
            near = (new >= low[left]) & (new <= high[left])
            x[left] = np.where(near, new, 0.5 * (low[left] + high[left]))
            left = left[np.abs(x[left] - at) > 1e-15 * at]
        return x

    def tails(s):
        size, back = np.unique(np.abs(s), return_inverse=True)
        x = root_at(size, _chords(root_at, size, 0.5 * top))
        value, slope, logs = loss_at(x)
        rounding = LOG_MIXTURE * (2 + logs + slope * (np.abs(x) + top))
        edge = float((np.abs(value - size) + rounding).max(initial=0.0))
        x = np.where(s < 0, -x[back], x[back])
        x = np.maximum.accumulate(x) if x.size else x
        y_below, y_above = _mixture_tails(x, m, p)
        x_above, x_below = _mixture_tails(-x, m, p)
        return Tails(y_below, y_above, x_below, x_above, _mixture_error(x, top, p.size), edge, TINY * (1 + p.size))

    def nodes(prob):
        far = float(m[p >= prob].max(initial=0.0))
        x, log_mass = _mixture_nodes(prob, -far, far)
        up, down = _log_mixture(x, m, log_p)[0], _log_mixture(-x, m, log_p)[0]
        return up - down, log_mass + down

    return Loss(tails, nodes)


LOG_MIXTURE = 120 * U
"""Of _log_mixture: a term's exponent is within 2u |log p_i| + 8u m_i (|x| + m_i), as m_i are within 4u. Weighted by the
terms' parts of the sum this is at most 8u (|l| + 5 + l' (|x| + max m)), as |log p_i| <= |l| + |log of its part| + m_i
(|x| + m_i); exp, a pairwise sum of at most a million terms and log add 40u."""

TERMS = 1 << 20
"""Terms of a sum that are held at once."""


def _log_mixture(x, m, log_p):
    """l(x) = log sum_i p_i e^{m_i x - m_i^2/2} and its slope."""
    value, slope = np.empty(x.size), np.empty(x.size)
    rows = max(1, TERMS // m.size)
    for start in range(0, x.size, rows):
        at = slice(start, start + rows)
        terms = np.multiply.outer(x[at], m) + (log_p - 0.5 * m * m)
        peak = terms.max(axis=-1)
        parts = np.exp(terms - peak[:, None])
        total = parts.sum(axis=-1)
        value[at], slope[at] = peak + np.log(total), (parts * m).sum(axis=-1) / total
    return value, slope


def _chords(root_at, s, start):
    """Where the search for every root begins: on chords between every EVERY-th one."""
    if s.size <= EVERY:
        return start
    some = np.unique(np.r_[0 : s.size : EVERY, s.size - 1])
    return np.interp(s, s[some], root_at(s[some], start))


def _mixture_tails(x, m, p):
    """sum_i p_i Phi(x - m_i), and of the upper tails."""
    below, above = np.zeros(x.size), np.zeros(x.size)
    for weight, mean in zip(p, m, strict=True):
        low, high = _core.normal_tails(x - mean)
        below += weight * low
        above += weight * high
    return below, above


def _mixture_error(x, top: float, n: int):
    """Relative error of these: weights, their n terms, x - m_i, which is off by 8u (|x| + max m)."""
    size = np.abs(x) + top
    return U * (28 + 5 * n + 16 * (size + 1) * (size + 1))


def _mixture_nodes(prob: float, left: float, right: float):
    """Points x of a trapezoid rule, logarithms of their masses under N(0, 1)."""
    reach = math.sqrt(2 * max(1.0, -math.log(prob))) + 0.5
    n = math.ceil((2 * reach + right - left) * min(max(1.0, right), 8.0) / 0.2)
    x, dx = np.linspace(left - reach, right + reach, n, retstep=True)
    return x, -0.5 * x * x + math.log(dx / math.sqrt(2 * math.pi))


def atomic_loss(
    loss,
    num,
    den,
    *,
    edge,
    rel,
    lattice=None,
    mass_inf=0.0,
    mass_minus_inf=0.0,
    mass_error=0.0,
    absolute=0.0,
    endless=False,
) -> Loss:
    """Atoms at increasing `loss` (each within `edge`) of masses num, den, each within `rel` relative; edge and rel are
    one number, or one an atom. `absolute` bounds all that masses are off besides. `endless`: outcomes left out, within
    `absolute`, may have any loss. Sums run from both ends in long double, so that either tail keeps its relative
    accuracy."""
    loss, num, den = (np.ascontiguousarray(a, dtype=float) for a in (loss, num, den))
    sums, worst = [], np.full(loss.size + 1, np.max(rel, initial=0.0) if np.ndim(rel) == 0 else 0.0)
    for mass in (num, den):
        below, above = _sums(mass)
        sums += [below, above]
        if np.ndim(rel):
            for whole, part in zip((below, above), _sums(mass * rel), strict=True):
                worst = np.maximum(worst, np.divide(part, whole, out=np.zeros(whole.size), where=whole > 0))
    y_below, y_above, x_below, x_above = sums
    worst += 4 * U + loss.size * LDBL_ULP
    widest = float(np.max(edge, initial=0.0))
    ends = (float(loss[0]), float(loss[-1])) if loss.size else (0.0, 0.0)

    def tails(s):
        i = np.searchsorted(loss, s, side="right")
        return Tails(y_below[i], y_above[i], x_below[i], x_above[i], worst[i], widest, absolute)

    def nodes(_):
        ys, xs, at = num, den, loss
        if loss.size > COARSE_NODES:
            first = np.unique(np.linspace(0, loss.size - 1, COARSE_NODES).astype(int))
            ys, xs, at = np.add.reduceat(num, first), np.add.reduceat(den, first), None
        ok = (ys > 0) & (xs > 0)
        log_den = np.log(xs[ok])
        return np.log(ys[ok]) - log_den if at is None else at[ok], log_den

    def atoms():
        return Atoms(loss, num, den, rel, edge, absolute)

    return Loss(
        tails,
        nodes,
        *((-math.inf, math.inf) if endless else ends),
        mass_inf,
        mass_minus_inf,
        atoms,
        lambda: lattice or (two_points(atoms()) if np.max(rel, initial=0.0) < WELL_KNOWN else None),
        smooth=False,
        ends_error=0.0 if endless else widest,
        mass_error=mass_error,
    )


def _sums(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the first i entries and of all but these, i = 0..n."""
    below, above = np.zeros((2, mass.size + 1))
    below[1:] = mass.cumsum(dtype=np.longdouble)
    above[-2::-1] = mass[::-1].cumsum(dtype=np.longdouble)
    return below, above


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
        raise DomainError(
            f"{name} must return probabilities in [0, {1 - mass:g}], got {float(out[i])!r} at s={float(s[i])!r}"
        )
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
