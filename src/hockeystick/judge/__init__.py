"""An independent judge of certified intervals: the privacy curve again, by ball arithmetic, with none of the judged code.

pairs.py      what ran -> dominating pairs, with proofs or theorems
gauss.py, laplace.py, atoms.py   laws of one step and their transforms
contour.py    compositions by a trapezoid rule on a line in the plane
finite.py     compositions with few outcomes
twofold.py    two steps, by one integral
verdict.py    "confirmed", "refuted" or "not decided"

Rests on python-flint (Arb) alone. Every number is a ball that holds the truth, every truncation and discretisation has a bound
that is proved at the head of its file; doubles only plan (a mesh, a line, a number of nodes).
"""

try:
    import flint  # noqa: F401
except ImportError as error:
    raise ImportError("hockeystick.verify needs python-flint: pip install hockeystick[verify]") from error

from .verdict import Evidence, Verdict, verify

__all__ = ["Evidence", "Verdict", "verify"]
