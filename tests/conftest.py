"""Laws are tried on the same examples by every run, so that a run can be repeated; --hypothesis-profile=fresh finds
others."""

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, max_examples=300)
settings.load_profile("same")


def some(n: int, share: int = 4) -> list:
    """Numbers of random cases, the parameter of a test: one in `share` of n by default, all n where slow tests run."""
    return [n // share, pytest.param(n, marks=pytest.mark.slow)]
