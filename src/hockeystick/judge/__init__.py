"""An independent judge of certified intervals: the privacy curve again, by ball arithmetic, with none of the judged
code.

pairs.py      what ran -> dominating pairs, with proofs or theorems
gauss.py, laplace.py, atoms.py, allocation.py   laws of one step and their transforms
several.py, cyclic.py   runs that are known between others, or as the largest of others
contour.py    compositions by a trapezoid rule on a line in the plane
finite.py     compositions with few outcomes
twofold.py    two steps, by one integral
result.py, verdict.py    "confirmed", "refuted" or "not decided"

Rests on python-flint (Arb) alone. Every number is a ball that holds the truth, every truncation and discretisation has
a bound that is proved at the head of its file; doubles only plan (a mesh, a line, a number of nodes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arguments import respelled
from ..bound import Bound
from .result import Evidence, Verdict

if TYPE_CHECKING:
    from ..types import Adjacency, Direction, Numbers, Ran

__all__ = ["Evidence", "Verdict", "verify"]


@respelled(epsilon="eps")
def verify(
    run: Ran,
    bound: Bound[Any] | tuple[Any, Any],
    *,
    eps: float | Numbers | None = None,
    delta: float | Numbers | None = None,
    log: bool = False,
    adjacency: Adjacency = "add_remove",
    direction: Direction = "both",
    seconds: float = 10.0,
) -> Verdict:
    """Judge an interval for delta(eps) or eps(delta) by computing the curve again, in ball arithmetic and with other
    code.

    Parameters
    ----------
    run : Run or Mechanism
        What ran.
    bound : Bound or (float, float)
        The interval claimed: what `delta`, `log_delta` or `epsilon` returned, or (lower, upper).
    eps, delta : float or array_like, optional
        The question that the interval answers: delta at this `eps`, or eps at this `delta`. A `Bound` from the three
        queries says so itself.
    log : bool, default False
        With `eps`: the interval is of log delta(eps).
    adjacency, direction
        As in the query.
    seconds : float, default 10
        Processor time after which "not decided" is the answer.

    Returns
    -------
    Verdict
        "confirmed": the truth is proved to lie within the interval. "refuted": it is proved to lie outside, and
        `evidence` has the enclosure of the curve that shows it. "not decided": `why` says what is missing. For arrays
        "refuted" if one entry is, else "confirmed" if all are.

    Raises
    ------
    DomainError
        If the question is missing or an argument is outside its domain.
    ImportError
        Without python-flint: `pip install hockeystick[verify]`.

    Notes
    -----
    The only thing shared with the rest of the package are the parameters of the steps; the modules of
    `hockeystick.judge` say how each pair is derived, and prove every error. Covered: Gaussian, Laplace, their
    Poisson samples, truncated Poisson and fixed-size batches, cyclic sampling, random allocation (several
    participations and replace_one: between curves above and below, derived anew), groups, Gaussian and public
    mixtures, randomised responses, discrete noise, `approx_dp`, `from_pmf`, `from_curve`, `failure`, and their
    compositions. Not covered: `from_loss_cdf`, ranges of dataset sizes (of a group's: up to 64), discrete Gaussian
    noise beyond sigma 500, and long compositions of discrete laws off a lattice without continuous noise. Often not
    decided: three steps or more with so small a rate that next to no record is ever drawn, and random allocation of
    next to no loss, sqrt(steps/epochs) sigma/sensitivity beyond about 50.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    >>> hs.verify(run, hs.epsilon(run, 1e-5)).verdict
    'confirmed'
    >>> hs.verify(run, (2.0, 2.1), delta=1e-5).verdict
    'refuted'
    """
    try:
        from .verdict import judged
    except ImportError as error:
        raise ImportError("hockeystick.verify needs python-flint: pip install hockeystick[verify]") from error
    return judged(run, bound, eps, delta, log, adjacency, direction, seconds)
