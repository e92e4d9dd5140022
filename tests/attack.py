"""Random queries judged by what must hold: `python -m tests.attack --n 1000000 --seed 1 --state FILE` goes on where it
stopped.

Cases are asked in other processes, which may crash or hang; an answer is turned into facts (laws.py), and facts
about one number must meet. A case that takes longer than its patience (processor time) is counted as slow, not judged.
`--case I` asks one case and prints everything; `--table` prints what a state file holds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import pkgutil
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import laws
import queries

CHUNK = 200
PATIENCE = 0.05
"""Seconds of processor time for a case, and for the laws about its answer; every hundredth case has 40 times that."""

HANG = 100.0
"""Seconds of its processor time without an answer after which a process is killed; and twenty times that by the clock,
should it wait for ever. On a machine with much to do a second of one is many of the other."""


class Slow(BaseException):
    """The patience of a case is at its end."""


def family(case: queries.Case) -> str:
    """What kind of run a case asks about."""
    if not case.parts:
        return case.query
    names = {step.name for step, _ in case.parts}
    if len(names) > 1:
        return "mixed runs"
    (name,) = names
    inner = {step.args[0].name for step, _ in case.parts} if name == "poisson_subsampled" else set()
    return f"sampled {' and '.join(sorted(inner))}" if inner else name


def judge(case: queries.Case, d: queries.Dice, counts: Counter, patience: float) -> list[str]:
    """What is wrong with the answer to a case; `counts` takes the comparisons and what was refused."""
    import hockeystick as hs

    kind = family(case)
    counts[f"family {kind}"] += 1
    counts["cases"] += 1
    try:
        answer = case.ask()
    except (hs.DomainError, hs.AccuracyError) as refusal:
        counts[f"refused {type(refusal).__name__}"] += 1
        return []
    wrong = []
    if any(laws.fixed_size_inside(step) for step, _ in case.parts):
        wrong.append("a step whose theorem is about a fixed size was sampled and accepted")
    if getattr(answer, "certified", False):
        wrong += laws.sane(answer, *laws.RANGES.get(case.query, (0, 1)))
        counts["law order of the ends"] += 1
    stop = time.process_time() + patience
    signal.setitimer(signal.ITIMER_PROF, patience, patience)
    facts = None
    with contextlib.suppress(hs.DomainError, hs.AccuracyError):  # of what the answer is compared with
        facts = laws.directly(case, answer)
    if facts:
        counts["law truth"] += 1
        counts["comparisons"] += 1
        counts[f"compared {kind}"] += 1
        wrong += [] if laws.meet(*facts) else [laws.shown(*facts)]
    found = laws.points(case, answer)
    for point in d.sample(found, min(len(found), 2)):
        facts, asked = [point.fact], [laws.truth, laws.duality, *laws.OWN, d.choice(laws.LAWS)]
        dice = [queries.Dice(f"{d.random()}") for _ in asked]  # their own: one that is cut short moves no other
        for law, own in zip(asked, dice, strict=True):
            if not isinstance(point.eps, float) and law is not laws.truth:
                continue
            try:
                fact = law(point, own)
            except (hs.DomainError, hs.AccuracyError, Slow) as why:
                counts["law slow" if isinstance(why, Slow) else "law refused"] += 1
                continue
            if fact:
                counts[f"law {law.__name__.replace('_', ' ')}"] += 1
                counts["comparisons"] += len(facts)
                counts[f"compared {kind}"] += len(facts)
                at = f"delta({point.eps!r}) {point.direction}: "
                wrong += [at + laws.shown(fact, other) for other in facts if not laws.meet(fact, other)]
                facts.append(fact)
            if time.process_time() > stop:
                return wrong
    return wrong


def _alarm(*_):
    raise Slow


def _late(*_):
    """An alarm that came while the timer was stopped."""


def tried(seed, index: int, counts: Counter, patience: float) -> list[tuple[str, str]]:
    """(what, detail) of everything wrong with one case: "wrong", "crash" or "slow"."""
    case = queries.draw(seed, index)
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, patience, patience)  # again: what is raised in a __del__ is lost
    try:
        try:
            found = judge(case, queries.Dice(f"{seed}/{index}/laws"), counts, patience)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, _late)  # after an alarm that still waits has been raised here
    except Slow:  # also one that came after the answer
        counts["slow"] += 1
        return [("slow", "")]
    except Exception as error:  # nothing but the errors of the package may come out of it
        return [("crash", f"{type(error).__name__}: {error}")]
    return [("wrong", text) for text in found]


def loaded() -> None:
    """Every room of the package imported: an alarm within an import would leave half of a module."""
    import hockeystick as hs

    for found in pkgutil.walk_packages(hs.__path__, "hockeystick."):
        if not found.name.startswith(("hockeystick.adapters", "hockeystick.__main__", "hockeystick.individual.dask")):
            with contextlib.suppress(ModuleNotFoundError):  # of an extra
                importlib.import_module(found.name)
    queries.made("hs.delta(hs.from_loss_cdf(lambda s: ndtr(s - 0.5), lambda s: ndtr(s + 0.5)) * 2, 1.0)")


def _work(pipe, seed, patience: float) -> None:
    """A process that judges the ranges that it is sent, and reports after every case."""
    import resource

    loaded()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    while (span := pipe.recv()) is not None:
        for index in range(*span):
            counts: Counter = Counter()
            pipe.send((index, tried(seed, index, counts, patience * (40 if index % 100 == 99 else 1)), counts))


def spent(process) -> float:
    """Processor seconds of a process so far; where there is no /proc, none."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process and the range that it is at; it is replaced where it crashes or hangs."""

    def __init__(self, seed, patience: float):
        self.asked, self.span = (seed, patience), None
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_work, args=(end, *self.asked), daemon=True)
        self.process.start()
        end.close()
        self._hear()

    def _hear(self):
        self.heard = time.monotonic(), spent(self.process)

    def _hangs(self) -> bool:
        since = time.monotonic() - self.heard[0]
        return since > HANG and (since > 20 * HANG or spent(self.process) - self.heard[1] > HANG)

    def give(self, lo: int, hi: int):
        self.span, self.next, self.counts, self.found = (lo, hi), lo, Counter(), []
        self.pipe.send((lo, hi))
        self._hear()

    def listen(self) -> bool:
        """Whether the range is done."""
        try:
            while self.next < self.span[1] and self.pipe.poll(0.0):
                index, found, counts = self.pipe.recv()
                self._took(index, found, counts)
        except (EOFError, ConnectionError):
            self._again("the process died")
        if self.next < self.span[1] and self._hangs():
            self._again(f"no answer in {HANG:g} s")
        return self.next >= self.span[1]

    def _took(self, index, found, counts):
        self.counts.update(counts)
        self.found += [(index, *row) for row in found]
        self.next = index + 1
        self._hear()

    def _again(self, why: str):
        self.process.kill()
        self.process.join()
        self._took(self.next, [("crash", why)], Counter(cases=1, killed=1))
        self._start()
        if self.next < self.span[1]:
            self.pipe.send((self.next, self.span[1]))


def attack(n: int, seed, state: Path, jobs: int = 1, patience: float = PATIENCE) -> None:
    """Judge the cases of a seed that `state` does not hold yet, up to n; each line of `state` is a range that is
    done."""
    lines = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    if any(line["seed"] != seed for line in lines):
        raise SystemExit(f"{state} is about seed {lines[0]['seed']}, not {seed}")
    done = {line["from"] for line in lines}
    spans = iter([(lo, min(lo + CHUNK, n)) for lo in range(0, n, CHUNK) if lo not in done])
    workers = [Worker(seed, patience) for _ in range(jobs)]
    with state.open("a") as file:
        while workers:
            time.sleep(0.005)
            for worker in list(workers):
                if worker.span and not worker.listen():
                    continue
                if worker.span:
                    row = {"seed": seed, "from": worker.span[0], "counts": worker.counts, "found": worker.found}
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    for index, what, text in worker.found:
                        if what != "slow":
                            print(f"{index} {what}: {text}\n    {queries.draw(seed, index)!r}", flush=True)
                span = next(spans, None)
                if span is None:
                    worker.pipe.send(None)
                    workers.remove(worker)
                else:
                    worker.give(*span)


def table(state: Path) -> str:
    """What a state file holds: cases, comparisons, refusals, by family and by law."""
    counts, found = Counter(), Counter()
    for line in map(json.loads, state.read_text().splitlines()):
        counts.update(line["counts"])
        found.update(what for _, what, _ in line["found"])
    rows = [
        f"{counts['cases']:,} cases, {counts['comparisons']:,} comparisons; "
        + ", ".join(f"{found[what]:,} {what}" for what in ("wrong", "crash", "slow"))
    ]
    for head in ("refused ", "law ", "family "):
        names = sorted((name for name in counts if name.startswith(head)), key=lambda name: -counts[name])
        rows += [
            f"| {name} | {counts[name]:,} | {counts[name.replace('family', 'compared')] or ''} |" for name in names
        ]
    return "\n".join(rows)


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", default="1", help="a word, and the kinds of steps that runs begin with (queries.py)")
    parser.add_argument("--state", type=Path, default=Path("attack.jsonl"))
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--patience", type=float, default=PATIENCE)
    parser.add_argument("--case", type=int)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args(argv)
    if asked.case is not None:
        counts: Counter = Counter()
        print(repr(queries.draw(asked.seed, asked.case)))
        print(tried(asked.seed, asked.case, counts, 60.0), dict(counts))
        return
    if not asked.table:
        attack(asked.n, asked.seed, asked.state, asked.jobs, asked.patience)
    print(table(asked.state))


if __name__ == "__main__":
    main()
