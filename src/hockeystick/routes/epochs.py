"""How a line takes an epoch of random allocation: by points of the density of its loss, by lines or by paths, or by its
transform.

The choice is by measured tables of m = sensitivity/sigma and of the steps over its square: points are many where there
are few steps, and end too soon where noise is low; the transform takes long where there are many steps."""

from __future__ import annotations

import math

from . import mixed, option

AUTO, POINTS, PATHS = range(3)
"""How: as the tables say; by points wherever there are some; or by paths also where lines know points sooner."""

LOST = 30.0
"""Nats of delta above the mass of outcomes that a table leaves out, which adds at most e^-30 of delta then."""

DEPTHS = (44.0, 55.0, 70.0, 90.0, 120.0, 165.0, 230.0, 320.0, 450.0, 520.0, 610.0, 660.0, 700.0, 740.0)
"""Nats of what tables leave out, of which the first that serves a question is taken."""

POINTS_FROM = ((0.55, 300.0), (1.3, 20_000.0)), ((0.55, 300.0), (0.85, 25_000.0), (1.3, 1e5))
"""Of REMOVE and of ADD, whose transform reaches further: up to some m the steps over its square from which an epoch is
taken by points of its density."""

SOONER = (0.92, 0.0), (1.02, 3e5), (1.12, 1e6)
"""As POINTS_FROM: where lines know points of the density sooner than paths; beyond, they are often in vain."""

PATHS_FROM = 5e4
"""Steps over the square of m from which paths are asked at once under REMOVE: what the transform is asked for there
takes tens of seconds, and is not found."""

PARTIAL = 8e3
"""Steps over the square of m up to which the transform may know more than points that end too soon."""

WIDTHS, DEEP = (0.7, 0.4), 130.0
"""Of the window of points, and nats from which it is the narrower one: large tilts see the fall of a wide one."""


def any_of(m: float, t: int, kinds) -> bool:
    """Whether m and the steps over its square are of one of the kinds."""
    return any(m <= shift and t > least * m * m for shift, least in kinds)


def line_step(m: float, t: int, add: int, k: int, depth: float, how: int):
    """An epoch k times as a line takes it. Points leave out a probability of e^-depth at most."""
    found = None
    dense = any_of(m, t, POINTS_FROM[add])
    sooner = dense and (add or any_of(m, t, SOONER))
    paths = how != AUTO or (not add and t > PATHS_FROM * m * m)
    paths = paths and k > 1 and option.has_path(m, t) and (not sooner or how == PATHS)
    dense = dense or (how != AUTO and m <= POINTS_FROM[add][0][0])
    if depth < math.inf and (paths or dense):
        from ..what import allocation_density, allocation_path  # at their first use

        reach = 11 + 1.1 * math.sqrt(2 * max(depth - LOST, 0.0) / k)  # of a tilt at delta, and beyond, of alike losses
        reach = math.inf if how != AUTO else math.expm1(min(reach * m / math.sqrt(t), 50.0)) * math.sqrt(t) / m
        for nats in (depth, *[x for x in reversed(DEPTHS) if x < depth]):  # fewer where bounds do not reach that far
            window = nats + math.log(k), WIDTHS[nats > DEEP]
            if paths:
                found = allocation_path.points(m, t, *window)
            else:
                found = allocation_density.points(m, t, *window, reach)
            if found is not None:
                break
    if found is None:
        return mixed.AllocationStep(m, t, add, k)
    partial = not found.whole and t < PARTIAL * m * m
    cells = found.left_out_of(add)
    step = mixed.DensityStep(found.columns(add), found.lost, k, allocation_density.CELLS, partial, found.slow, cells)
    return step._replace(points=found) if found.slow and not add else step
