"""Rounding constants one at a time: the operations that a constant pays for are put off by A u; that constant alone,
taken A times, covers them.

An error claim is a sum of many constants times u, of which each is there for some operations. Noise that moves all of
them (tests/noise.py) sees their sum: a constant that is a thousand times too small is covered by its neighbours. Here
operations and constants have amplitudes of their own (tests/covers_build.py). For a constant, reference/covers.json
names a query, one of its error terms, and operations. They are put off by A u, each to the side that moves the answer
most, all else as it is. With the constant taken A times,

    |answer - clean answer| <= the rounding term, or the bound stays on its side of the clean one

must hold; with the constant A/1000 times it must not, so that a constant wrong by that much is seen.

reference/covers_left.json says of every other constant what was measured of it in the queries (`Left`).

    python -m tests.covers --build DIR           # checks every constant
    python -m tests.covers --build DIR --find    # looks for the operations again, writes both tables

Needs clang and opt (14); --find takes half an hour, the check a minute."""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TABLE = HERE / "reference/covers.json"
LEFT = HERE / "reference/covers_left.json"
ROUNDING = ("rounding", "fft_rounding")
AMPLITUDE, SEEN, MOST = 3e4, 1e3, 1e8
"""Units u: of an operation whose effect is measured; by how much a constant may be wrong unseen; the largest."""

GONE = "an operation is gone: --find"

MEASURED = 20.0
"""Seconds for the shares of one query, and as much for its operations, unless --each says otherwise."""

MOST_NEAR = 100
"""Operations of a constant's own function or file whose effect is measured, the nearest first; all of a query that
has no more."""

SHARE = 0.7
"""Part of a constant that the operations found for it take at most: what is left is for the second order. A first one
that would take more, as several constants pay for it or one exactly, is put off by so much less."""


LEAST = 3e-4
"""Part of a constant that an operation takes at least to be put off: several of less than a thousandth may be seen."""

SUMMED_IN = {
    "src/hockeystick/what/allocation_epoch.py": "csrc/law/one_term.c",
    "src/hockeystick/what/allocation_jumps.py": "csrc/law/one_term.c",
    "src/hockeystick/what/allocation_path.py": "csrc/law/one_term.c",
    "src/hockeystick/what/allocation_density.py": "csrc/law/one_term.c",
    "src/hockeystick/what/allocation_line.py": "csrc/law/one_term.c",
    "src/hockeystick/what/allocation.py": "csrc/law/allocation_table.c",
}
"""Files whose constants pay for sums in another one, whose operations are as near as their own."""


def probes() -> dict[str, str]:
    """Names and expressions of the queries; every one makes its run anew."""
    return {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in PROBES.strip().split("\n")}


PROBES = (HERE / "reference/covers_queries.txt").read_text()


class Lab:
    """The instrumented package of this process."""

    def __init__(self, folder: Path):
        from tests import noise

        import hockeystick
        from hockeystick import _lines

        self.hs, self.lines, self.noise = hockeystick, _lines, noise.install()
        self.noise.core.hs_noise_set(noise.HIGH, noise.NEAREST, 1)
        self.noise.core.hs_noise_begin()
        known = json.loads((folder / "sites.json").read_text())
        self.claims, self.places = known["claims"], [tuple(place) for place in known["places"]]
        self.names, numbers = {}, collections.Counter()
        for at, (path, function, line, kind) in enumerate(self.places):
            text = _line_of(path, line) if path else ""
            key = f"{path} {function} {kind} {text}"
            self.names[at] = f"{key} {numbers[key]}"
            numbers[key] += 1

    def ask(self, text: str) -> dict[str, float]:
        """The terms of an answer: each bound by its name, the estimate, and the rounding claim of it."""
        self.noise.forget()
        answer = eval(text, dict(SCOPE))
        return terms(answer)

    def reached(self, text: str):
        """(terms, operations, constants) of a clean answer."""
        import numpy as np

        self.lines.reached[:] = 0
        self.lines.claim_reached[:] = 0
        clean = self.ask(text)
        return clean, np.flatnonzero(self.lines.reached).tolist(), np.flatnonzero(self.lines.claim_reached).tolist()

    def moved(self, text: str, operations: dict[int, float], factors: dict[int, float]):
        """The terms with operations off, in units u, and constants multiplied; None where there is no answer."""
        import numpy as np

        for at, by in operations.items():
            self.lines.amplitude[at] = by
        for at, by in factors.items():
            self.lines.factor[at] = by
        try:
            with np.errstate(all="ignore"), self.limit(3):
                return self.ask(text)
        except (Exception, self.late):
            return None
        finally:
            self.lines.amplitude[list(operations)] = 0
            self.lines.factor[list(factors)] = 1

    @property
    def limit(self):
        from tests import noise

        return noise.at_most

    @property
    def late(self):
        from tests import noise

        return noise.LateError


def _line_of(path: str, line: int, cache={}) -> str:  # noqa: B006
    if path not in cache:
        cache[path] = (HERE.parent / path).read_text().split("\n")
    return "".join(cache[path][line - 1].split()) if 0 < line <= len(cache[path]) else ""


def terms(answer) -> dict[str, float]:
    import numpy as np

    if isinstance(answer, dict):
        return answer
    found = {}
    if hasattr(answer, "budget"):
        parts = {name: float(np.max(x)) for name, x in answer.budget.terms.items()}
    elif hasattr(answer, "terms"):
        parts = dict(zip(("term0", "term1", "term2", "rounding"), map(float, answer.terms), strict=False))
    else:
        return {"upper": float(np.max(answer))}
    found["rounding"] = sum(parts.pop(name, 0.0) for name in ROUNDING)
    for name in ("estimate", "upper", "lower"):
        found[name] = float(np.ravel(getattr(answer, name))[0])
    return found | {f"the {name}": x for name, x in parts.items() if x > 1e-290 and math.isfinite(x)}


def gain(name: str, a: dict, b: dict) -> float:
    """By how much a term is worse for whoever asks in b than in a: an upper end lower, a lower one higher, an estimate
    off; of a named error term relative."""
    if name not in b:
        return math.nan
    by = a[name] - b[name]
    return abs(by) if name == "estimate" else -by if name == "lower" else by / a[name] if name[:4] == "the " else by


def covered(name: str, clean: dict, noisy: dict) -> bool:
    if name == "estimate":
        return abs(noisy["estimate"] - clean["estimate"]) <= noisy["rounding"]
    return gain(name, clean, noisy) <= 0


SCOPE: dict = {}


def scope(hs) -> None:
    import numpy as np

    from hockeystick import _core, rates, replaced, risk_gdp, routes, scratch, step_moments
    from hockeystick.cli import records
    from hockeystick.grid import convolve
    from hockeystick.individual import epsilons, renyi
    from hockeystick.routes import (
        bounds,
        contour,
        cumulant,
        finite_sample,
        jumps,
        loss_steps,
        mixed,
        pld,
        prv,
        saddle_laws,
        single,
        walls,
    )
    from hockeystick.routes import kept as lines
    from hockeystick.routes.question import Question
    from hockeystick.what import allocation, allocation_line, allocation_path, condensed, loss, pair, sampling
    from hockeystick.what import allocation_density as density
    from hockeystick.what import allocation_epoch as option
    from hockeystick.what.allocation_call import CallLine
    from hockeystick.what.allocation_jumps import Jumps

    def one(x, *names):
        return {name.rpartition(".")[2]: float(x[i]) for i, name in enumerate(names)}

    def expanded(m, q, k, at):
        """One rare large loss by its expansion, without a line."""
        rows = _core.Rows(*(np.array([x]) for x in (m, q, k)))
        return scratch.lend(_core.jumps_work(1), _core.jumps_ask, rows, 0, 1, at, *jumps.rule()).certified("jumps")

    def kept(mechanism, steps, at, what="epsilon"):
        """The answer of an accountant that keeps a line, after a few more steps."""
        accountant = hs.Accountant()
        accountant.step(mechanism, steps)
        getattr(accountant, what)(at)
        accountant.step(mechanism, 5)
        return getattr(accountant, what)(at)

    def asked(last, at, what="epsilon"):
        """The last answer of an accountant with a hundred distinct steps, asked three times, some steps between."""
        accountant = hs.Accountant()
        for sigma in np.linspace(1, 2, 100):
            accountant.step(SCOPE["S"](float(sigma), 0.02), 5)
        for step in [hs.gaussian(40.0), SCOPE["S"](1.5, 0.03), last]:
            getattr(accountant, what)(at)
            accountant.step(step, 5)
        return getattr(accountant, what)(at)

    def charged(norms):
        """What is left to records that were charged, each with a minus, and what was spent."""
        records = hs.IndividualGDPFilter(len(norms), budget_mu=1.0)
        records.charge(np.array(norms), sigma=1.3)
        return {f"left{i}": -x for i, x in enumerate(records.left_mu_lower())} | {"upper": records.spent_mu_upper()[0]}

    epoch = allocation.allocation_loss(0.5, 3)

    def tail(at):
        """The tail of an epoch's loss, and its error."""
        found = epoch.tails(np.array([at]))
        return {"upper": float(found.y_above[0] * (1 + found.rel[0]) + found.absolute)}

    def points(m, t, *window):
        """Points of the density of an epoch: their mass, and its error."""
        found = density.points(m, t, *window)
        num = np.exp(found.log_num)
        return {"upper": float((num * (1 + found.error)).sum()), "the error": float((num * found.error).sum())}

    def cut_line(m, t, r, b, x, other=0.0):
        """A line of an epoch's density whose cut b rejects many terms: log C at two tilts, and the density at x."""
        line, law = allocation_line.Line(m, t, r, b, min(0.7, density.CUT / m), 1.0), density._law(m, t, False)
        found = {name: line.real(at)[0] + line.real(at)[2] for name, at in (("upper", r), ("other", other))}
        value, error, base = law.accepted(np.array([x]), line)
        return found | {"density": float((value[0] + error[0]) * math.exp(base[0]))}

    def rejected(m, t, b, x):
        """The density of samples with a rejected term."""
        law, eta = density._law(m, t, False), 2 * min(0.7, density.CUT / m)
        lines = [allocation_line.Line(m, n, 0.0, b, eta, 0.7) for n in (t, t - 1)]
        value, error = Jumps(law.sd, law.accepted, lines[0], {0.0: lines[1]}).density(np.array([x]))
        return {"upper": float(value[0] + error[0]), "lower": float(value[0] - error[0])}

    def term(m, turned, s, at_least=0.0):
        """One term's transform at complex s, and its error."""
        rule = option._Rule(m, 1, turned, abs(np.angle(s) - turned), abs(s), least=at_least)
        h, error = rule.at(np.array([s]))
        return {"re": float(h.real[0] + error[0]), "im": float(h.imag[0] + error[0])}

    def jumped(m, r):
        """Its discontinuity, and its error."""
        value, error, _ = option._discontinuity(m, np.array([r]))
        return {"upper": float(value[0] + error[0])}

    def price(ask, m, t, *args):
        """The logarithm of an option's price from both sides."""
        for kept in (option._largest, option._real, option._coarse):
            kept.cache_clear()
        value = ask.__wrapped__(m, t, *args)
        return {"upper": value.log + value.error, "lower": value.log - value.error}

    def path(m, t, x, j):
        """Density, tail or call price of an epoch's sum by paths, from both sides."""
        with np.errstate(all="ignore"):
            log, off = (float(found[0]) for found in allocation_path._Law(m, t).at(np.array([x]), j))
        return {"upper": log + off, "lower": log - off}

    def called(m, t, x):
        """The price of a call by one line without a pole, from both sides."""
        value, *errors = CallLine(m, t, 1.2 * x).at(x)
        return {"upper": value + sum(errors), "lower": value - sum(errors)}

    def parity(m, t, eps):
        """log delta of one epoch by the price of a put, from both sides."""
        for kept in (option.log_put, option._largest, option._real, option._coarse):
            kept.cache_clear()
        x = t * math.expm1(eps)
        value = routes.option._by_parity(m, t, x, x + t)
        return {"upper": value.log + value.error, "lower": value.log - value.error}

    def shifts(run, eps):
        """log delta of a run of very many shifts."""
        condensed.condensed.cache_clear()
        return hs.log_delta(run, eps)

    def spent(norms):
        """eps of a record of a file of norms, without sampling."""
        args = types.SimpleNamespace(noise_multiplier=1.3, clip=1.0, noise=None, delta=1e-5)
        return {"upper": float(records._plain(lambda: [np.array([norms])], 7, args, None)[0][0])}

    def ruled(m, q):
        """The sum of m^2 over a rule for small shifts of many rates, and what it misses."""
        nodes, fits, moments = [], [], step_moments.StepMoments()
        moments._add_to_cells(m, q, None)
        rates._by_orders(rates.Held.of(moments), 1.0, nodes, fits)
        return {"upper": sum(w * x * x for x, _, w in nodes), "the weight": sum(fit[4] for fit in fits)}

    def transform(m, t, c, y):
        """The transform of an epoch's loss from both sides, and its value at the last frequency."""
        log_f, off, (re, im, err) = _core.allocation_line(m, t, c, np.array(y), np.zeros(_core.allocation_work()))
        return {"upper": log_f + off, "lower": log_f - off, "re": re[-1] + err[-1], "im": im[-1] + err[-1]}

    def ends(found):
        """A certified number from both sides."""
        return {name: float(np.max(x)) for name, x in zip(("lower", "upper"), found, strict=True)}

    def above(step, at, adjacency="add_remove", add=False):
        """The mass of a step's larger losses from both sides, edges and all that masses may be off by counted."""
        loss = pair.step_loss(step, adjacency, add)
        t = loss.tails(np.array([at]))
        near, far = (float(loss.tails(np.array([at + side * t.edge])).y_above[0]) for side in (-1, 1))
        rel, wide = float(np.max(t.rel)), float(t.absolute + loss.mass_error)
        ends = {"end": loss.hi + loss.ends_error} if loss.hi < math.inf else {}
        return {"upper": near * (1 + rel) + wide, "lower": far * (1 - rel) - wide} | ends

    def atoms(step, adjacency="add_remove", add=False):
        """The last atom of a step's loss, and its mass, with their errors."""
        found = pair.step_loss(step, adjacency, add).atoms()
        edge, rel = np.max(found.edge), np.max(found.rel)
        first, last = (float(found.num[i] * (1 + rel) + found.absolute) for i in (0, -1))
        return {"upper": float(found.loss[-1] + edge), "mass": last, "first": first}

    def lattice(step, adjacency="add_remove"):
        """The first mass of a step's lattice, and its last place, with their errors."""
        found = pair.step_loss(step, adjacency, False).lattice()
        place = found.step * (found.first + found.num.size - 1) + found.offset + found.edge
        return {"upper": float(place), "mass": float(found.num[0] * (1 + np.max(found.rel)) + found.lost)}

    def paired(run, add=0):
        """The packed pair of a run's step."""
        return jumps._pair(pair.paired_steps(run, "add_remove", False).steps, add)

    def below(step, eps):
        """delta of one step at eps by its curve."""
        value, error = pair.step_loss(step, "add_remove", False).curve(eps)
        return {"upper": value * (1 + error), "lower": value * (1 - error)}

    def by_atoms(step, eps):
        """delta of one step by its atoms, from both sides."""
        loss = pair.step_loss(step, "add_remove", False)
        error, value = single._atom_by_atom(loss, loss.atoms(), eps)
        return {"upper": value + error, "lower": value - error}

    def beside(run, delta):
        """What is left of delta beside the probability of infinite losses."""
        least, most = walls.rest(pair.losses(run, "add_remove", "remove"), delta)
        return {"upper": most, "lower": least}

    def chernoff(run, add, eps):
        """Chernoff's bound of log delta."""
        own = pair.gaussian_steps(run, "add_remove")
        return {"upper": scratch.lend(_core.contour_work(1), _core.chernoff_upper, own, add, 1, eps)[1]}

    def early(run, add, eps, enough=-1e3):
        """A bound of log delta by the saddle's tilt alone."""
        own = pair.gaussian_steps(run, "add_remove")
        return {"upper": scratch.lend(_core.saddle_work(), _core.saddle_delta_upper, own, add, eps, enough, 1)[1]}

    def cost(norm):
        """What a large norm is charged."""
        words = [np.zeros(1, np.int64) for _ in range(2)]
        active = np.zeros(1, np.uint8)
        _core.individual_charge(np.array([norm]), 1.3, 1e300, 2**60, 0, 0, words[0], words[1], active, 1, 0)
        return {"upper": float(max(words[0][0], words[1][0]))}

    def product(error):
        """The first value of a convolution of two laws, and its error."""
        values, off, _ = convolve._multiply(*[(np.eye(1, 4)[0], error, 1.0)] * 2, 1)
        return {"upper": float(values[0] / 4 + off)}

    def moments(kind, m, q, which):
        """Absolute moments of one loss about its mean, with their errors."""
        value, error = _core.edgeworth_bounded(kind, m, q, which, *loss.gauss_legendre())
        return {"upper": float(value[4] + error[4]), "third": float(value[5] + error[5])}

    def weights(step):
        """Weights and rate of a truncated sample, with their errors."""
        cut, u = sampling.truncation_of(step), 2.0**-53
        off = 1 + np.array([cut.w_err, cut.q_err]) * u
        return {"upper": cut.weight * off[0], "rate": cut.q * off[1], "lower": cut.weight * (2 - off[0])}

    def moved(run, eps, add):
        """eps by the shift of a matched lattice, and what that is off by."""
        laws = prv._matched(pld.prepare_at(pair.losses(run, "add_remove", add), eps, 1e-3, 1)[0], 1e-3, -10.0)
        at = laws.upper
        return {"upper": at.shift + at.radius, "reach": saddle_laws._reach(at, eps) + eps}

    def other(first, more, add):
        """What a kept line says of the direction that it is not for."""
        memory, work = np.empty(_core.KEPT_ROOM), np.empty(max(_core.KEPT_WORK, _core.contour_work(1)))
        own = pair.gaussian_steps(first, "add_remove")
        _core.kept_make(own, add, 0, math.log(1e-6), 1e-9, 30.0, memory, work)
        return {"upper": _core.kept_ask(memory, np.array(more), len(more), 0, math.log(1e-6), False, work)[1]}

    def chained(find, at, remove, add):
        """A record zeroed, then replaced, from what either direction says."""
        said = {"remove": types.SimpleNamespace(upper=remove), "add": types.SimpleNamespace(upper=add)}
        return {"upper": find(lambda *_, direction: said[direction], None, at, {})}

    def regret(mu, truth, h):
        """The largest regret about a point of a Gaussian curve, from four of its points."""
        eps = [1.0 + h * i for i in range(4)]
        deltas = [0.5 * math.erfc((e / truth - truth / 2) / math.sqrt(2)) for e in eps]
        deltas = [
            d - math.exp(e) * 0.5 * math.erfc((e / truth + truth / 2) / math.sqrt(2))
            for d, e in zip(deltas, eps, strict=True)
        ]
        return {"upper": risk_gdp._regret_upper(mu, risk_gdp._rows(eps, *[np.array(deltas, dtype=float)] * 2))}

    def curve(run, add, eps):
        """Chernoff's bounds at a few tilts."""
        question = Question(run, "add_remove", True, None, 1)
        return {"upper": float(bounds.curve_upper(question, add, np.array([eps]))[0])}

    SCOPE.update(lattice=lattice, by_atoms=by_atoms, beside=beside, finite_sample=finite_sample, risk_gdp=risk_gdp)
    SCOPE.update(above=above, atoms=atoms, chernoff=chernoff, early=early, other=other, regret=regret, curve=curve)
    SCOPE.update(hs=hs, np=np, math=math, _core=_core, jumps=jumps, contour=contour)
    SCOPE.update(replaced=replaced, chained=chained, option=option, term=term, jumped=jumped, price=price)
    SCOPE.update(path=path, called=called, parity=parity, shifts=shifts)
    SCOPE.update(types=types, cut_line=cut_line, rejected=rejected, spent=spent, ruled=ruled)
    SCOPE.update(asked=asked, charged=charged, tail=tail, points=points, expanded=expanded, lines=lines)
    SCOPE.update(bounds=bounds, mixed=mixed, pair=pair, renyi=renyi, epsilons=epsilons, convolve=convolve)
    SCOPE.update(steps=pair.gaussian_steps, one=one, kept=kept, transform=transform)
    SCOPE.update(ends=ends, cumulant=cumulant, loss_steps=loss_steps, loss=loss, sampling=sampling)
    SCOPE.update(cost=cost, product=product, moments=moments, weights=weights, moved=moved, paired=paired, below=below)
    SCOPE["S"] = lambda sigma, q: hs.poisson_subsampled(hs.gaussian(sigma), q)
    SCOPE["P"] = hs.poisson_subsampled
    SCOPE["norm"] = np.vectorize(lambda x, mu: 0.5 * math.erfc((mu - x) / math.sqrt(2)))


# Looking for operations

SMALL, IDLE = 1e-2, 1 / SEEN
"""A share of a claim below which a constant is small in it; of a constant below which operations leave it idle."""


class Left(NamedTuple):
    """What was measured of a constant without a row: in how many queries it was reached; the largest share of a claim
    (of a rounding term, an error term, an interval's width) that is its own, and where; the largest share of it that
    operations near it take in a query, together; and how many pairs of it and a query were left out for want of time.

    No reason is written by hand: `reason` follows from the numbers."""

    reached: int = 0
    share: float = 0.0
    where: str = ""
    takes: float = 0.0
    late: int = 0

    @property
    def looked(self) -> int:
        """In how many queries its shares were measured: where time runs short, constants with few come first."""
        return self.reached - self.late

    @property
    def reason(self) -> str:
        """unreached: by no query. unmoved: taken a thousand times it moves no claim. small: without it no claim would
        be smaller by more than a hundredth. idle: all operations near it take at most a thousandth of it. late: not
        looked at in every query. beside: operations take more, but never of it alone."""
        if not self.reached:
            return "unreached"
        if not self.share:
            return "late" if self.late == self.reached else "unmoved"
        if self.share <= SMALL:
            return "small"
        return "late" if self.late else "idle" if self.takes <= IDLE else "beside"

    def joined(self, other: Left) -> Left:
        most = max(self, other, key=lambda x: x.share)
        late = self.late + other.late
        return Left(self.reached + other.reached, most.share, most.where, max(self.takes, other.takes), late)


class Search:
    """For every constant the query and term in which it has the largest share, and operations that it covers."""

    def __init__(self, lab: Lab):
        self.lab, self.effects, self.clean, self.found = lab, {}, {}, {}
        self.shares = collections.defaultdict(list)  # of a constant: (share, query, term, increment)
        self.left: dict[int, Left] = collections.defaultdict(Left)
        self.takes: dict[int, float] = collections.defaultdict(float)

    def measure(self, name: str, text: str, wanted, each: float = MEASURED) -> list[int]:
        """Shares of the wanted constants that the query reaches; these."""
        clean, operations, constants = self.lab.reached(text)
        self.clean[name] = clean, operations
        until = time.monotonic() + each
        constants = sorted((at for at in constants if at in wanted), key=lambda at: self.left[at].looked)
        for at in constants:
            late = time.monotonic() > until
            self.left[at] = self.left[at].joined(Left(1, late=int(late)))
            if late:
                continue
            several = [(by, self.lab.moved(text, {}, {at: by})) for by in (3.0, SEEN)]
            for term in clean:
                claim = "rounding" if term == "estimate" else term
                if term == "rounding" or claim not in clean:
                    continue
                rise = [abs_gain(claim, clean, x) / (by - 1) if x else math.nan for by, x in several]
                rise = rise[1] if abs(rise[0] - rise[1]) <= 0.05 * abs(rise[1]) else rise[0]
                size = max(clean["rounding"], 1e-300) if term == "estimate" else 1.0
                self.note(at, name, term, rise / (size if term == "estimate" else room(term, clean)))
                if rise > (1e-6 * size if term == "estimate" else 1e-19):
                    self.shares[at].append((rise / size, name, term, rise))

        return constants

    def note(self, at: int, name: str, term: str, share: float) -> None:
        if share > max(1e-9, self.left[at].share):
            self.left[at] = self.left[at]._replace(share=float(f"{min(share, 1.0):.2g}"), where=f"{name}: {term}")

    def effect(self, name: str, at: int) -> dict[str, float]:
        """What one unit of an operation does to every term, with its sign."""
        if (name, at) not in self.effects:
            text, clean, by = probes()[name], self.clean[name][0], AMPLITUDE
            self.effects[name, at] = {}
            while by >= 1:
                noisy = self.lab.moved(text, {at: by}, {})
                if noisy and abs(noisy.get("estimate", 0) - clean.get("estimate", 0)) < 1e-3:
                    self.effects[name, at] = {
                        term: (clean[term] - noisy.get(term, math.nan))
                        / by
                        / (clean[term] if term[:4] == "the " else 1)
                        for term in clean
                    }
                    break
                by /= 100
        return self.effects[name, at]

    def seek(self, constant: int, name: str, until: float) -> dict | None:
        """A row of the table, whose check passes, and fails with the constant at a thousandth: from operations of the
        constant's own function, else of its file, else of all whose effect is known."""
        claim, first = self.lab.claims[constant], ("estimate", "upper", "lower")
        shares = [x for x in self.shares[constant] if x[1] == name]
        near, few = collections.defaultdict(list), len(self.clean[name][1]) <= MOST_NEAR
        for at in self.clean[name][1]:
            path, function, line, _ = self.lab.places[at]
            own = path in (claim["path"], SUMMED_IN.get(claim["path"]))
            rank = 2 if not own else 0 if function == claim["within"] else 1
            near[rank].append((abs(line - claim["line"]), at))
        for rank in (0, 1, 2):
            for _, _, term, rise in sorted(shares, key=lambda x: (x[2] not in first, -x[0])):
                if (rank == 2 and term not in first) or time.monotonic() > until:
                    continue
                found = [at for _, at in sorted(near[rank])]
                row = self._seek(constant, name, term, rise, found, MOST_NEAR if rank < 2 or few else 0, until)
                if row:
                    return row | {"near": rank}
        return None

    def _seek(self, constant, name, term, rise, operations, most, until):
        chosen, total, taken = {}, 0.0, 0.0
        known = [at for at in operations if (name, at) in self.effects]
        for at in operations[:most] if most else known:
            if time.monotonic() > until:
                self.left[constant] = self.left[constant]._replace(late=self.left[constant].late + 1)
                return None
            e = self.effect(name, at).get(term, math.nan)
            taken += abs(e) if abs(e) < rise else 0.0
            part = 1.0 if chosen else min(1.0, 0.99 * SHARE * rise / max(abs(e), 1e-300))
            if LEAST * rise < part * abs(e) and total + part * abs(e) < SHARE * rise:
                sign = math.copysign(float(f"{part:.2g}"), e)
                chosen[at] = -sign if term == "lower" else sign
                total += part * abs(e)
        self.takes[constant] = max(self.takes[constant], taken / rise if most else 0.0)
        if not chosen:
            return None
        by = max(1e4, (30 * self.clean[name][0].get("rounding", 0) / total) if term == "estimate" else 1e5)
        while by >= 3e3:
            row = {"query": name, "term": term, "by": float(f"{by:.2g}"), "takes": float(f"{total / rise:.2g}")}
            row["operations"] = {self.lab.names[at]: sign for at, sign in chosen.items()}
            if by <= MOST and judge(self.lab, constant, row) == "covers":
                return row
            by /= 10
        return None


def room(name: str, clean: dict) -> float:
    """What a share of an end is taken of: the width of its interval, else the end; of a named term, that is relative,
    1."""
    if name[:4] == "the ":
        return 1.0
    width = abs(clean["upper"] - clean["lower"]) if "lower" in clean and "upper" in clean else abs(clean[name])
    return max(width, 1e-300)


def abs_gain(name: str, clean: dict, other: dict) -> float:
    """By how much a larger constant widens a term."""
    return -gain(name, clean, other)


def judge(lab: Lab, constant: int, row: dict, factor: float = 1.0) -> str:
    """Whether the constant (times `factor`) covers, and whether a thousandth of it would be missed."""
    numbers = {name: at for at, name in lab.names.items()} if not hasattr(lab, "numbers") else lab.numbers
    lab.numbers = numbers
    text, by = probes()[row["query"]], row["by"]
    if not all(name in numbers for name in row["operations"]):
        return GONE
    operations = {numbers[name]: sign * by for name, sign in row["operations"].items()}
    clean = lab.moved(text, {}, {})
    whole = lab.moved(text, operations, {constant: by * factor})
    less = lab.moved(text, operations, {constant: by * factor / SEEN})
    if not (clean and whole and less):
        return "no answer"
    if not covered(row["term"], clean, whole):
        return "does not cover"
    return "covers" if not covered(row["term"], clean, less) else "a thousandth covers"


def name_of(claim: dict) -> str:
    return " ".join(str(claim[x]) for x in ("path", "within", "number", "text"))


def chosen(given) -> dict[str, str]:
    return {name: text for name, text in probes().items() if not given.only or name in given.only}


def stored(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def find(lab: Lab, given) -> None:
    """Rows for all constants, query by query; a row that still holds stays, and what was measured of the others is
    forgotten where it is measured anew: all of it, unless queries are chosen."""
    search, start = Search(lab), time.monotonic()
    old, before = stored(TABLE), {} if not given.only else stored(LEFT)
    names = {at: name_of(claim) for at, claim in enumerate(lab.claims)}
    rows = {
        names[at]: old[names[at]] for at in names if names[at] in old and judge(lab, at, old[names[at]]) == "covers"
    }
    for name, text in chosen(given).items():
        began, had = time.monotonic(), len(rows)
        if began - start > given.seconds:
            break
        try:
            wanted = search.measure(name, text, {at for at in names if names[at] not in rows}, given.each)
        except Exception as error:
            print(f"{name}: {type(error).__name__} {error}", flush=True)
            continue
        until = time.monotonic() + given.each
        for at in [at for at in wanted if any(x[1] == name for x in search.shares[at])]:
            if time.monotonic() > until:
                search.left[at] = search.left[at]._replace(late=search.left[at].late + 1)
                continue
            row = search.seek(at, name, until)
            if row:
                rows[names[at]] = row
        print(f"{time.monotonic() - began:5.1f} s {name}: {len(rows) - had} more of {len(rows)}", flush=True)
        TABLE.write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n")
        write_left(search, names, rows, before)
    left = collections.Counter(x["reason"] for x in stored(LEFT).values())
    print(f"{len(rows)} of {len(names)}; without a row: {dict(left)}")


def write_left(search: Search, names: dict, rows: dict, before: dict) -> None:
    """One line a constant without a row."""
    found = {}
    for at, name in names.items():
        if name in rows:
            continue
        was = Left(**{k: x for k, x in before.get(name, {}).items() if k != "reason"})
        takes = float(f"{search.takes[at]:.2g}")
        now = was.joined(search.left[at]._replace(takes=takes))
        found[name] = {"reason": now.reason, **now._asdict()}
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(found.items()))
    LEFT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def check(lab: Lab) -> int:
    rows = json.loads(TABLE.read_text())
    said = {at: judge(lab, at, rows[name_of(c)]) for at, c in enumerate(lab.claims) if name_of(c) in rows}
    print(f"{len(lab.claims)} constants, {len(said)} with operations; {collections.Counter(said.values())}")
    for at, word in said.items():
        if word != "covers":
            print(f"{word}: {name_of(lab.claims[at])}")
    wrong = [word for word in said.values() if word not in ("covers", GONE)]
    gone = sum(word == GONE for word in said.values())
    return 1 if wrong or gone > len(said) / 10 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="where the build lies or goes")
    parser.add_argument("--find", action="store_true", help="look for operations again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for --find")
    parser.add_argument("--each", type=float, default=MEASURED, help="seconds for one query, for --find")
    parser.add_argument("--only", nargs="*", help="names of queries, for --find")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder = given.build.resolve()
    if given.inside:
        lab = Lab(folder)
        scope(lab.hs)
        return find(lab, given) or 0 if given.find else check(lab)
    if not (folder / "sites.json").exists():
        from tests.covers_build import build

        build(folder)
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{HERE.parent}", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", "tests.covers", "--inside", *sys.argv[1:]], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
