"""python -m tests.confirm FILE --n 10000: answers of the shared generator of queries, confirmed one by one by
`hs.verify`.

Cases of `tests/queries.py` that ask delta, log_delta or epsilon are asked and judged; each outcome is appended to FILE
as a line of JSON, and a later call goes on where it stopped. A table by kind of mechanism is printed. With --corners
the cases are those of `benchmarks/widths.py`, its families in turn: eps of runs whose answers were wide or slow."""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import hockeystick as hs
import queries
import widths

JUDGED = ("delta", "log_delta", "epsilon")
VERDICTS = ("confirmed", "not decided", "refuted", "refused", "slow", "error")


def kind(case) -> str:
    """What kind of mechanism a case asks about."""
    names = {
        step.name if step.name != "poisson_subsampled" else f"sampled {step.args[0].name}" for step, _ in case.parts
    }
    return names.pop() if len(names) == 1 else "several kinds"


class Corner:
    """The case of an index of `benchmarks/widths.py`, as one of `queries`."""

    query = "epsilon"

    def __init__(self, seed, index: int):
        names = list(widths.FAMILIES)
        self.kind = names[index % len(names)]
        self.said, self.run, self.delta, self.options = widths.question(hs, self.kind, seed, index // len(names))

    def ask(self):
        return hs.epsilon(self.run(), self.delta, **self.options)

    def __repr__(self):
        return f"{self.kind}: {self.said}"


_RANG = threading.Event()


def _late(*_):
    _RANG.set()
    raise TimeoutError


def outcome(seed, index: int, seconds: float, patience: float = 5.0, corners: bool = False) -> dict | None:
    """The verdict on one case as a line of the file, or None if the case asks something else. `patience`: processor
    seconds after which an answer of the library itself is given up."""
    case = Corner(seed, index) if corners else queries.draw(seed, index)
    if case.query not in JUDGED:
        return None
    row = {"seed": seed, "index": index, "query": case.query, "kind": case.kind if corners else kind(case)}
    settings = {name: case.options[name] for name in ("adjacency", "direction") if name in case.options}
    signal.signal(signal.SIGVTALRM, _late)
    start = time.process_time()
    _RANG.clear()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, patience)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bound = case.ask()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 3 * seconds)
        verdict = hs.verify(case.run(), bound, seconds=seconds, **settings)
        row |= {"verdict": verdict.verdict, "why": verdict.why if verdict.verdict != "confirmed" else ""}
    except (hs.DomainError, hs.AccuracyError) as error:
        row |= {"verdict": "refused", "why": str(error)[:120]}
    except Exception as error:  # the alarm may ring within compiled code, which wraps what it raises
        late = _RANG.is_set()
        row |= {"verdict": "slow", "why": ""} if late else {"verdict": "error", "why": repr(error)[:200]}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if row["verdict"] in ("refuted", "error"):
        row["case"] = repr(case)
    return row | {"seconds": round(time.process_time() - start, 4)}


def table(rows: list[dict]) -> str:
    """Verdicts by kind of mechanism, and processor seconds of the judge."""
    counts, times = collections.Counter(), collections.defaultdict(list)
    for row in rows:
        for key in (row["kind"], "all"):
            counts[key, row["verdict"]] += 1
            if row["verdict"] in VERDICTS[:3]:
                times[key].append(row["seconds"])
    kinds = [*sorted({row["kind"] for row in rows}), "all"]
    lines = [f"{'kind':34}" + "".join(f"{v:>13}" for v in VERDICTS) + f"{'mean s':>9}"]
    for key in kinds:
        mean = sum(times[key]) / max(len(times[key]), 1)
        lines.append(f"{key:34}" + "".join(f"{counts[key, v]:13}" for v in VERDICTS) + f"{mean:9.3f}")
    return "\n".join(lines)


def _one(task):
    return task[1], outcome(*task)


def main(argv=None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.confirm", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--n", type=int, default=10_000, help="number of answers judged, over all calls")
    parser.add_argument("--seed", default="confirm")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time for one verdict")
    parser.add_argument("--patience", type=float, default=5.0, help="processor time for one answer of the library")
    parser.add_argument("--corners", action="store_true", help="cases of benchmarks/widths.py")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args(argv)
    rows, first = [], 0
    if args.file.exists():
        for line in args.file.read_text().splitlines():
            row = json.loads(line)
            if row["seed"] == args.seed:
                first = max(first, row["index"] + 1)
                rows += [row] if "verdict" in row else []
    judged = sum(row["verdict"] in VERDICTS[:3] for row in rows)
    tasks = ((args.seed, index, args.seconds, args.patience, args.corners) for index in range(first, 10**9))
    with args.file.open("a") as out, multiprocessing.Pool(args.jobs, initializer=os.nice, initargs=(10,)) as pool:
        for index, row in pool.imap(_one, tasks) if args.jobs > 1 else map(_one, tasks):
            if judged >= args.n:
                break
            if row is None:
                continue
            out.write(json.dumps(row) + "\n")
            out.flush()
            rows.append(row)
            judged += row["verdict"] in VERDICTS[:3]
            if row["verdict"] in ("refuted", "error"):
                print(index, row["verdict"], row["why"], row["case"], flush=True)
        pool.terminate()
    print(table(rows))
    return int(any(row["verdict"] == "refuted" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
