"""What the judge says. No ball is needed to hold it."""

from __future__ import annotations

from typing import NamedTuple


class Evidence(NamedTuple):
    """lower <= delta(eps) <= upper in one direction, rounded outward; `text` has the digits that a double cannot
    hold."""

    direction: str
    eps: float
    lower: float
    upper: float
    text: str


class Verdict(NamedTuple):
    """What `verify` found.

    Attributes
    ----------
    verdict : "confirmed", "refuted" or "not decided"
    why : str
        One sentence.
    evidence : tuple of Evidence
        Enclosures of the curve on which it rests.
    """

    verdict: str
    why: str
    evidence: tuple[Evidence, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether the claim is proved."""
        return self.verdict == "confirmed"

    @property
    def refuted(self) -> bool:
        """Whether the claim is disproved."""
        return self.verdict == "refuted"
