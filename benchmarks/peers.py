"""hockeystick beside other accountants, all in this run: eps, true error, seconds.

    python benchmarks/peers.py [--quick]
    python benchmarks/peers.py --markdown      the table of README.md, which is written there as well

Each call runs in a process of its own, stopped after 60 s. Peers that cannot be imported are left out. Times are
seconds of the processor, all of one thread, so that what else a machine does changes no ratio by much. They are warm:
the process answers once (checked), then again for slightly different deltas (once only, if over 5 s); accountants are
built anew each time, as is our run, but for the row where it is kept and asked again. The ratios are an accountant's
time over those two."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import cases
import machine

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None

TIMEOUT_S = 60
SPAN_S = 0.5
"""Processor time of a batch of questions: some clocks of it tick every 10 ms."""

WAIT_S = 900
"""Of the clock, on a machine that does something else as well."""

README = ("headline", "headline, 1e-20", "long", "longer, sparse", "few steps", "100 distinct", "Gaussian k=1e4")
"""The problems of the table in README.md."""

KEPT = "hockeystick, run kept"
HEADER = "| sigma, q, k, delta | accountant | eps | true error | time (run kept) | ratio (to a run kept) |"
NEEDS = {
    "hockeystick": "hockeystick",
    KEPT: "hockeystick",
    "dp_accounting PLD": "dp_accounting",
    "dp_accounting RDP": "dp_accounting",
    "prv_accountant": "prv_accountant",
}


def ours(problem, keep=False):
    import hockeystick as hs

    kept = cases.build(hs, problem) if keep else None

    def ask(delta):
        answer = hs.epsilon(kept or cases.build(hs, problem), delta)
        assert answer.certified
        return answer.lower, answer.estimate, answer.upper

    return ask


def google(problem, kind):
    import dp_accounting as dpa

    new = dpa.pld.PLDAccountant if kind == "PLD" else dpa.rdp.RdpAccountant

    def ask(delta):
        accountant = new()
        for sigma, q, k in problem.steps:
            event = dpa.GaussianDpEvent(sigma)
            accountant.compose(event if q == 1 else dpa.PoissonSampledDpEvent(q, event), k)
        return (accountant.get_epsilon(delta),) * 3

    return ask


def microsoft(problem):
    import prv_accountant as prv

    def ask(delta):
        laws = [
            prv.GaussianMechanism(s.sigma)
            if s.q == 1
            else prv.PoissonSubsampledGaussianMechanism(noise_multiplier=s.sigma, sampling_probability=s.q)
            for s in problem.steps
        ]
        counts = [s.k for s in problem.steps]
        accountant = prv.PRVAccountant(
            prvs=laws, max_self_compositions=counts, eps_error=0.01, delta_error=delta / 1000
        )
        return accountant.compute_epsilon(delta, counts)

    return ask


ASK = {
    "hockeystick": ours,
    KEPT: lambda p: ours(p, keep=True),
    "dp_accounting PLD": lambda p: google(p, "PLD"),
    "dp_accounting RDP": lambda p: google(p, "RDP"),
    "prv_accountant": microsoft,
}


def batch(ask, delta: float, count: int) -> float:
    """Processor seconds of a question, over `count` of them with deltas that differ."""
    start = time.process_time()
    for i in range(count):
        ask(delta * (1 + 1e-3 * (i + 1) / count))
    return (time.process_time() - start) / count


def child(peer: str, name: str) -> None:
    """Answer one problem and print (lower, estimate, upper), seconds, warm."""
    problem = next(p for p in cases.PEER_PROBLEMS if p.name == name)
    ask = ASK[peer](problem)
    if resource:
        resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S))
    start = time.process_time()
    answer = [float(x) for x in ask(problem.delta)]
    took = time.process_time() - start
    if took < 5:
        count = 1
        while (took := batch(ask, problem.delta, count)) * count < 0.5 * SPAN_S:  # the first answer may have been slow
            count *= 4
        took = min(took, batch(ask, problem.delta, count), batch(ask, problem.delta, count))
    print(json.dumps([answer, took]))


def measure(peer: str, problem) -> dict:
    command = [sys.executable, __file__, "--child", peer, problem.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        return {"failure": f"over {WAIT_S} s"}
    if done.returncode < 0:
        return {"failure": f"over {TIMEOUT_S} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return {"failure": lines[-1].partition(":")[0][:70]}
    (lower, estimate, upper), took = json.loads(done.stdout.splitlines()[-1])
    return {"lower": lower, "eps": estimate, "upper": upper, "seconds": took}


def verdict(peer: str, found: dict, true: float) -> str:
    if "failure" in found:
        return found["failure"]
    if not math.isfinite(found["eps"]):
        return "no finite answer"
    if found["upper"] < true * (1 - 1e-13):
        return "upper bound BELOW the truth"
    if found["lower"] > true * (1 + 1e-13) and found["lower"] != found["upper"]:
        return "lower bound ABOVE the truth"
    return "certified" if NEEDS[peer] == "hockeystick" else ""


def rows(problems):
    """(problem, truth, peer, result, ratios of seconds to hockeystick's with the run built and kept)."""
    for problem in problems:
        true, base = cases.truth(problem), {}
        for peer, needs in NEEDS.items():
            if importlib.util.find_spec(needs) is None:
                continue
            found = measure(peer, problem)
            if needs == "hockeystick":
                base[peer] = found.get("seconds", math.nan)
                assert "failure" in found or verdict(peer, found, true) == "certified", (problem.name, found)
            ratios = [found.get("seconds", math.nan) / base.get(name, math.nan) for name in ("hockeystick", KEPT)]
            yield problem, true, peer, found, ratios


def short(x: float) -> str:
    """A number as one says it: 0.01, 1e-5, 1e3."""
    digits = f"{x:.3g}"
    power = math.log10(x)
    if power == round(power) and not 0.01 <= x < 1000:
        return f"1e{round(power)}"
    return digits


def described(problem) -> str:
    if len(problem.steps) > 1:
        return f"{len(problem.steps)} distinct steps, {short(problem.delta)}"
    ((sigma, q, k),) = problem.steps
    if q == 1:
        return f"Gaussian {short(sigma)}, k = {short(k)}, {short(problem.delta)}"
    return ", ".join(short(x) for x in (sigma, q, k, problem.delta))


def main() -> None:
    parser = argparse.ArgumentParser(description="hockeystick beside other accountants")
    parser.add_argument("--markdown", action="store_true", help="write the table of README.md")
    parser.add_argument("--quick", action="store_true", help="the headline problem only")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    problems = cases.PEER_PROBLEMS[:1] if options.quick else cases.PEER_PROBLEMS
    if options.markdown:
        problems = [problem for problem in problems if problem.name in README]
    left_out = sorted({n for n in NEEDS.values() if importlib.util.find_spec(n) is None})
    print(machine.describe() + (f"; not installed: {', '.join(left_out)}" if left_out else "") + "\n")
    if options.markdown:
        return write(table(problems), whole=not left_out and not options.quick)
    line = "{:26s} {:21s} {:>9s} {:>9s} {:>9s} {:>9s} {:>9s}  {}"
    for problem, true, peer, found, ratios in rows(problems):
        shown = cells(problem, true, peer, found, ratios)
        print(line.format(*shown, verdict(peer, found, true)), flush=True)
    return None


def cells(problem, true: float, peer: str, found: dict, ratios: list[float]) -> list[str]:
    """What a row shows; nothing where there is no answer."""
    bad, own = "failure" in found, NEEDS[peer] == "hockeystick"
    return [
        described(problem) if peer == "hockeystick" else "",
        peer,
        "" if bad else f"{found['eps']:.6g}",
        f"{abs(found['eps'] - true):.1e}" if not bad and math.isfinite(found["eps"]) else "",
        "" if bad else machine.pretty(found["seconds"]),
        *("" if own or math.isnan(ratio) else f"{ratio:,.0f}x" for ratio in ratios),
    ]


def table(problems):
    """Lines of Markdown; of a run that is kept time and ratios stand in brackets."""
    yield HEADER
    yield "|---" * HEADER.count(" | ") + "|---|"
    own = []
    for problem, true, peer, found, ratios in rows(problems):
        shown = cells(problem, true, peer, found, ratios)
        if peer == "hockeystick":
            own = shown
            continue
        if peer == KEPT:
            shown = [*own[:4], f"{own[4]} ({shown[4]})", ""]
        else:
            said = verdict(peer, found, true)
            if said and "failure" in found:
                shown[2] = said
            elif said and math.isfinite(found["eps"]):
                shown[3] = said
            shown[5:] = [f"{shown[5]} ({shown[6]})" if shown[5] else ""]
        shown[4] = shown[4].replace(" ", "\u00a0")  # a number and its unit stay on one line
        yield "| " + " | ".join(shown) + " |"


def write(lines, whole: bool) -> None:
    """The table, printed as it grows and, if nothing is left out, put in the place of the one in README.md."""
    made = []
    for line in lines:
        print(line, flush=True)
        made.append(line)
    if not whole:
        return
    page = Path(__file__).resolve().parents[1] / "README.md"
    text = page.read_text(encoding="utf-8")
    start = text.index(HEADER)
    page.write_text(text[:start] + "\n".join(made) + text[text.index("\n\n", start) :], encoding="utf-8")


if __name__ == "__main__":
    main()
