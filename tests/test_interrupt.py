"""Ctrl-C in the middle of long calls: they end soon, and the library answers afterwards what it answered before."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

SETUP = """
import importlib, io, pkgutil, time
import numpy as np
import hockeystick as hs
from hockeystick import grid, individual, logs, routes, what

for package in (grid, individual, routes, what):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
grid._fft.zeros(2)

def steps(n, make=lambda i: hs.gaussian(1.0 + i)):
    return hs.compose(*((hs.poisson_subsampled(make(i / n), 0.01), 1) for i in range(n)))

def answers():
    known = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000
    bounds = [hs.epsilon(known, 1e-5, route=route) for route in ("auto", "saddlepoint")]
    bounds.append(hs.epsilon_batch(1.0, 0.01, 1000, 1e-5))
    return [(bound.lower, bound.estimate, bound.upper) for bound in bounds]

before = answers()
"""
"""Everything that a call would import is imported first: where an interrupt comes while importlib drops the lock of a
module, or a class is registered with an abstract one, Python itself loses it (1 of 140 during the import of pyfftw)."""

MANY = "run = steps(100_000)"
CALLS = {
    "pairs": ("run = steps(20_000)", "hs.epsilon(run, 1e-5, adjacency='replace_one')"),
    "contour": (MANY, "hs.epsilon(run, 1e-5)"),
    "contour, many eps": (MANY, "hs.delta(run, np.linspace(0.1, 8, 30))"),
    "saddlepoint": (MANY, "hs.epsilon(run, 1e-5, route='saddlepoint')"),
    "prawitz": (MANY, "hs.epsilon(run, 1e-5, route='edgeworth')"),
    "edgeworth": (MANY, "hs.aea_delta(run, 1.0)"),
    "moments": (MANY, "hs.moments_epsilon_upper(run, 1e-5)"),
    "grids": ("run = steps(3_000)", "hs.epsilon(run, 1e-5, route='pld')"),
    "a long grid": (
        "run = hs.poisson_subsampled(hs.laplace(1.0), 0.01) * 1000",
        "hs.epsilon(run, 1e-8, route='pld', rtol=1e-11)",
    ),
    "laws": ("run = steps(1_500, lambda i: hs.laplace(1.0 + i))", "hs.epsilon(run, 1e-5)"),
    "atoms": (
        "a, b = np.random.default_rng(0).random((2, 2_000))\n"
        "run = hs.from_pmf(a / a.sum(), b / b.sum()) * 3 + hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 10",
        "hs.epsilon(run, 1e-5)",
    ),
    "columns": (
        "x = np.random.default_rng(0).random((2, 10**6))",
        "hs.epsilon(hs.compose_arrays(0.5 + 3 * x[0], 1e-3 + 1e-2 * x[1]), 1e-6)",
    ),
    "allocation": (
        "",
        "[hs.epsilon(hs.random_allocation(hs.gaussian(1 + i / 100), 1000) * 10, 1e-6) for i in range(100)]",
    ),
    "batch": ("x = np.geomspace(0.5, 5, 100_000)", "hs.epsilon_batch(x, 0.01, 1000, 1e-5)"),
    "records": (
        "k = np.random.default_rng(0).integers(0, 50, (20_000, 32))",
        "hs.individual_epsilons(k, sigmas=np.linspace(1, 20, 32), q=0.01, delta=1e-5)",
    ),
    "sizes": (
        "def run(size): return hs.truncated_poisson_subsampled(hs.gaussian(1.0), 1e-3, dataset_size=size,"
        " max_batch=1100)",
        "[hs.epsilon(run((10**4, 10**6 + i)) * 1000, 1e-5, adjacency='zero_out') for i in range(100)]",
    ),
    "hyperbola": (
        "run = hs.poisson_subsampled(hs.gaussian(0.5), 1e-3) * 3",
        "[hs.epsilon(run, x) for x in np.geomspace(1e-3, 1e-100, 10**4)]",
    ),
    "a log": (
        "log = b'sigma,q,steps\\n' + b''.join(b'%.17g,0.01,1\\n' % (1 + i * 1e-6) for i in range(100_000))",
        "logs.read_log(io.BytesIO(log), 'log')",
    ),
}
"""What is prepared, and what is interrupted: from 0.1 s to minutes long."""

SOON = 0.2
"""Seconds of processor time, which other processes on the machine do not spend."""

SERVE = (
    SETUP
    + """
import json, sys
prepared = None
for line in sys.stdin:
    prepare, call = json.loads(line)
    if prepare != prepared:
        names, prepared = dict(globals()), prepare
        exec(prepare, names)
    call = compile(call, "call", "exec")
    print("ready", flush=True)
    try:
        while True:
            exec(call, names)
    except KeyboardInterrupt:
        ended = time.process_time()
    print(ended, answers() == before, flush=True)
"""
)
"""One process is interrupted in all the calls, one after another: what one of them leaves behind meets the others. A
run that several ask about is made once."""


class Served:
    """The process, started where there is none."""

    child = None

    def started(self):
        if self.child is None:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            self.child = subprocess.Popen([sys.executable, "-c", SERVE], text=True, **pipes)
        return self.child

    def killed(self) -> str:
        """What it said."""
        child, self.child = self.child, None
        if child is None:
            return ""
        child.kill()
        return child.communicate()[1]


@pytest.fixture(scope="module")
def served():
    served = Served()
    yield served
    served.killed()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", CALLS)
def test_interrupt(name, served):
    child = served.started()
    overdue = threading.Timer(120, child.kill)
    overdue.start()
    try:
        child.stdin.write(json.dumps(CALLS[name]) + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n", served.killed()
        start = spent = spent_by(child.pid)
        while spent < start + 0.4:  # beyond what Python prepares
            time.sleep(0.02)
            spent = spent_by(child.pid)
        child.send_signal(signal.SIGINT)
        ended, same = child.stdout.readline().split() or pytest.fail(served.killed())
        assert same == "True"
        assert float(ended) - spent < SOON
    except BaseException:
        served.killed()
        raise
    finally:
        overdue.cancel()


def spent_by(pid: int) -> float:
    """Processor seconds of a process so far, to a hundredth; from /proc where there is one, else by ps."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            fields = stream.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        text = subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
        minutes, seconds = text.strip().split(":")[-2:]
        return 60 * int(minutes) + float(seconds)
