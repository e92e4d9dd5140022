"""Attacks by name, and what a measured attack says of a run: each is a question to the certified curve of tests.

Success of an attack that guesses a secret: [theory: risk.guess]. The audit in one run: [theory: risk.one-run].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from . import query, risk
from .arguments import numbers, one_of
from .bound import AccuracyError, Bound, Budget, DomainError
from .outward import UP, U
from .what.mechanism import as_run, count, real, within
from .what.pair import ADJACENCIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from .types import Adjacency, Ran, Sided

LEVELS = np.geomspace(1e-12, 1.0, 289)
"""Levels at which an audit is asked: 24 a decade."""

EPS_FAR, POINTS = 30.0, 241
"""The curve behind an audit is asked from -EPS_FAR to EPS_FAR, densely near 0."""

SEEN, NEAR = 1e-9, 1e-3
"""Share of the least true positive rate below which a delta is not seen; the least end of the curve that is asked."""

RECORDS_MAX = 10**12

MOST = 10**6
"""Canaries: a second for 1e4 correct guesses."""

ROOM, NARROW = 1e-9, 1e-4
"""Relative room for rounding at the last comparison; width of the search for the noise that is rejected."""


def reconstruction(run: Ran, baseline: float, **options: Unpack[Sided]) -> Bound[float]:
    """The largest chance to reconstruct a record, or to single it out, that could be guessed with chance `baseline`
    before.

    The secret is drawn from a law that the attacker knows, and so is everything else; an attempt succeeds if it is near
    enough by any measure. Whatever an attacker does with the output of a run without the record succeeds with
    probability `baseline` at most; with the record then with at most tpr(`baseline`), the largest true positive rate at
    that false positive rate.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    baseline : float
        In (0, 1): 1/n to single out one of n records that are equally likely, the share of the most frequent value for
        an attribute.
    adjacency, route, n_threads
        As in `delta`; under "replace_one" another record stands in the place of none.

    Returns
    -------
    Bound
        Certified bounds of `true_positive_rate` at `baseline`, num being the law with the record; its upper end holds
        for every attack.

    Raises
    ------
    DomainError, AccuracyError
        As in `true_positive_rate`.

    References
    ----------
    docs/theory/risk.md.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> f"{hs.reconstruction(run, 0.001):.6f}"
    '[0.004068, 0.004069]'
    >>> found = hs.calibrate(lambda s: hs.poisson_subsampled(hs.gaussian(s), 0.01) * 1000, over=(0.5, 5.0),
    ...                      reconstruction=0.002, baseline=0.001)
    >>> print(f"{found.value:.3f}")
    1.684
    """
    numbers("baseline", baseline, "in (0, 1)", 0.0, 1.0)
    return risk.true_positive_rate(run, baseline, direction="remove", **options)  # [theory: risk.guess]


def attribute_advantage(run: Ran, baseline: float, **options: Unpack[Sided]) -> Bound[float]:
    """How much better an attribute of a record is guessed after the run: `reconstruction` less `baseline`.

    Parameters, errors and guarantees are those of `reconstruction`. `advantage` is the largest over all baselines.

    Examples
    --------
    >>> import hockeystick as hs
    >>> b = hs.attribute_advantage(hs.gaussian(1.0), 0.5)      # a binary attribute: Phi(1) - 1/2
    >>> b.lower <= 0.3413447460685429 <= b.upper
    True
    """
    found = reconstruction(run, baseline, **options)
    low, mid, high = (end - baseline for end in (found.lower, found.estimate, found.upper))
    low, high = max(low - 2 * U, 0.0), min(max(high, 0.0) + 2 * U, 1.0)
    return Bound(low, min(max(mid, low), high), high, found.route, True, Budget({"chords": high - low}, "rate"))


def reidentification(run: Ran, records: int, **options: Unpack[Sided]) -> Bound[float]:
    """The largest chance to name the record that is in the data among `records` that are equally likely:
    `reconstruction` with the baseline 1/records.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    records : int
        2 to 1e12.
    adjacency, route, n_threads
        As in `reconstruction`.

    Returns
    -------
    Bound
        Certified; its upper end holds for every attack.

    Raises
    ------
    DomainError, AccuracyError
        As in `reconstruction`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> f"{hs.reidentification(run, 1000):.6f}"
    '[0.004068, 0.004069]'
    """
    return reconstruction(run, 1 / count("records", records, 2, RECORDS_MAX), **options)


def one_run_audit(run: Ran, *, canaries: int, guesses: int, correct: int, adjacency: Adjacency = "add_remove") -> float:
    """The p-value of the claim that `run` is what ran, after an attack on many canaries in one run.

    Each of `canaries` records is put into the data with probability 1/2, independently, known to the auditor. Somebody
    who sees the output names the status of `guesses` of them, as many as they like, and `correct` are right. If the
    curve of `run` holds for every canary, the p-value is at most s with probability at most s. A small one refutes the
    claim about the whole chain, from the coins of the canaries to the scores: it does not say whether noise, clipping,
    sampling or sensitivity is wrong. A large one proves nothing.

    Parameters
    ----------
    run : Run or Mechanism
        What is claimed to have run. Its whole certified curve is used, upper ends, the worse direction at every point.
    canaries : int
        1 to 1e6. Where exactly half of the canaries are put in the theorem says nothing.
    guesses : int
        1 to `canaries`. The rule that chooses whom to guess, and so this number, must be fixed before looking at
        who is right; else multiply the p-value by the number of rules that were tried.
    correct : int
        0 to `guesses`.
    adjacency : "add_remove", "replace_one" or "zero_out"
        What absence of a canary means.

    Returns
    -------
    float
        One of the levels 1e-12 to 1 at which the test was asked, 24 a decade, such that it rejects at this and all
        larger ones; 1 where it does not reject.

    Raises
    ------
    DomainError
        If a number is outside its range.
    AccuracyError
        If the curve cannot be certified.

    References
    ----------
    [MMC24, Thm 9], built on [SNJ23]. docs/theory/risk.md.

    Examples
    --------
    >>> import hockeystick as hs
    >>> claimed = hs.gaussian(2.0)
    >>> hs.one_run_audit(claimed, canaries=1000, guesses=1000, correct=560)     # 0.599 is the largest expected share
    1.0
    >>> print(f"{hs.one_run_audit(claimed, canaries=1000, guesses=1000, correct=800):.2f}")  # one event may reveal all
    0.02
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    accepted = np.flatnonzero(~_rejected(run, adjacency, _observed(canaries, guesses, correct), LEVELS))
    first = int(accepted[-1]) + 1 if accepted.size else 0
    return float(LEVELS[first]) if first < LEVELS.size else 1.0


def one_run_epsilon_lower(
    make_run: Callable[[float], Ran],
    *,
    over: tuple[float, float],
    canaries: int,
    guesses: int,
    correct: int,
    delta: float,
    significance: float = 0.05,
    adjacency: Adjacency = "add_remove",
) -> float:
    """The eps that an attack on canaries in one run shows, if what ran is make_run(x) for some noise x.

    Every make_run(x) is a claim as in `one_run_audit`, the stronger the larger x. The least x that is rejected at the
    level `significance` is found by halving, and epsilon(make_run(x), delta) returned. If what ran is in the family,
    with any x, the result is above its eps with probability at most `significance`. That is a statement within the
    family, whose whole curve is used: it refutes no (eps, delta)-DP of anything else.

    Parameters
    ----------
    make_run : callable
        make_run(x) returns a Run or Mechanism whose curve falls, at every point, as x grows.
    over : (lo, hi)
        Range of x, 0 < lo < hi.
    canaries, guesses, correct, adjacency
        As in `one_run_audit`.
    delta : float
        In (0, 1), of the eps that is returned.
    significance : float, default 0.05
        In (0, 1); divided by the number of rules where the best of several is taken.

    Returns
    -------
    float
        0 where no claim is rejected; at most the eps of make_run(lo).

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    AccuracyError
        If a curve cannot be certified.

    References
    ----------
    [MMC24, Thm 9]. docs/theory/risk.md.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = hs.one_run_epsilon_lower(hs.gaussian, over=(0.1, 100.0), canaries=1000, guesses=500, correct=450,
    ...                                  delta=1e-5)
    >>> 3.38 < found < 3.39        # gaussian(0.9) has eps 4.56
    True
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    seen = _observed(canaries, guesses, correct)
    if not isinstance(over, tuple | list) or len(over) != 2:
        raise DomainError(f"over must be a pair (lo, hi), got {over!r}")
    low, high = (real("over", end, "two numbers, 0 < lo < hi") for end in over)
    if not 0 < low < high < math.inf:
        raise DomainError(f"over must be two numbers with 0 < lo < hi, got {over!r}")
    delta, level = within("delta", delta, 0, 1, "()"), within("significance", significance, 0, 1, "()")

    def rejects(x: float) -> bool:
        return bool(_rejected(make_run(x), adjacency, seen, np.array([level]))[0])

    if not rejects(high):
        return 0.0
    if rejects(low):
        high = low
    while high > low * (1 + NARROW):  # [theory: risk.family]
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return float(query.epsilon(as_run(make_run(high)), delta, adjacency=adjacency).lower)


def _observed(canaries: int, guesses: int, correct: int) -> tuple[int, int, int]:
    m = count("canaries", canaries, 1, MOST)
    g = count("guesses", guesses, 1, m)
    return m, g, count("correct", correct, 0, g)


def _far(run: Ran, adjacency: Adjacency, delta: float) -> float:
    """The eps beyond which delta(eps) is at most `delta`, at least NEAR; points beyond it add next to nothing."""
    if not delta > 0:
        return math.inf
    try:
        return max(NEAR, float(query.epsilon(as_run(run), delta, adjacency=adjacency).upper))
    except AccuracyError:
        return math.inf


def _rejected(run: Ran, adjacency: Adjacency, seen: tuple[int, int, int], levels: np.ndarray) -> np.ndarray:
    """Whether the claim of `run` is rejected, at every level. A test of true positive rate r has a false positive rate
    of at least (r - delta)/x at every point."""
    m, g, v = seen
    eps = np.sinh(np.linspace(-6.0, 6.0, POINTS)) * (EPS_FAR / math.sinh(6.0))
    # Fewer points are a smaller F [theory: risk.family]
    eps = eps[np.abs(eps) <= _far(run, adjacency, SEEN * float(levels.min()) * v / m)]
    delta = np.asarray(query.delta(as_run(run), eps, adjacency=adjacency).upper)
    x = np.exp(eps) * UP
    turn = delta[:-1] + x[:-1] * (delta[:-1] - delta[1:]) / np.diff(x)  # below it the next point is better
    turn = np.minimum.accumulate(turn)[::-1]
    r, h = levels * v / m, levels * (g - v) / m  # [theory: risk.one-run]
    for i in range(v - 1, -1, -1):
        at = delta.size - 1 - np.searchsorted(turn, r)
        more = np.maximum((r - delta[at]) / x[at], h)
        if not (more > h).any():
            break
        r = np.minimum(1.0, r + i / (g - i) * (more - h))
        h = more
    return r + h > g / m * (1 + ROOM)
