"""Laws are tried on the same examples by every run, so that a run can be repeated; --hypothesis-profile=fresh finds
others."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, max_examples=300)
settings.load_profile("same")
