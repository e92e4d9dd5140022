"""The ledger of an accountant: several processes, kills at random instants, full disks, foreign and damaged files."""

import gc
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import hockeystick as hs
from damage import snapshot
from hockeystick import ledger
from hockeystick.recorded import RecordedRun
from hockeystick.what.given import REGISTERED
from test_serial import EVERY

SGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01)
SLOW_KILLS = 500

WRITER = """
import sys
import hockeystick as hs
path, own, sync = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "sync"
accountant = hs.Accountant(path, sync=sync)
done = sum(n for step, n in accountant.run.parts if step.sensitivity == own)
print(done, flush=True)
while True:
    done += 1
    accountant.step(hs.gaussian(10.0 * own + done % 7 / 10, sensitivity=own))
    sys.stdout.write("%d\\n" % done)
    sys.stdout.flush()
"""


def of(accountant, own):
    """How many steps of one writer are on file."""
    return sum(n for step, n in accountant.run.parts if step.sensitivity == own)


def kill_at_random_instants(path, kills, seed, writers=2, sync=True):
    """Writers charge one ledger at once and are killed one after another at random instants; after each kill every
    writer's steps on file are held against what it had been told. Returns the steps, and how often one was not told of
    yet."""
    rng, told, untold, alive = np.random.default_rng(seed), {}, 0, {}
    hs.Accountant(path, sync=sync).close()

    def start(own):
        command = [sys.executable, "-c", WRITER, str(path), str(own), "sync" if sync else "no"]
        alive[own] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    for own in range(1, writers + 1):
        told[own] = 0
        start(own)
    for kill in range(kills):
        own = 1 + kill % writers
        child = alive[own]
        if rng.random() < 0.9:
            first = child.stdout.readline()
            assert first, child.stderr.read()
            told[own] = max(told[own], int(child.stdout.readline()))
            time.sleep(rng.exponential(0.03))
        else:
            time.sleep(rng.uniform(0.0, 0.3))
        child.send_signal(signal.SIGKILL)
        out, err = child.stdout.read(), child.stderr.read()
        child.wait()
        assert not err, err
        told[own] = max([told[own], *(int(line) for line in out.split(b"\n")[:-1])])
        with hs.Accountant(path) as accountant:
            found = of(accountant, own)
            assert told[own] <= found <= told[own] + 1  # one may be on file and not yet told
        untold += found > told[own]
        told[own] = found
        start(own)
    for own, child in alive.items():
        child.kill()
        child.wait()
        said = [int(line) for line in child.stdout.read().split(b"\n")[:-1]]
        told[own] = max([told[own], *said])
    with hs.Accountant(path) as accountant:
        for own, n in told.items():
            assert n <= of(accountant, own) <= n + 1
        assert accountant.steps == sum(n for _, n in accountant.run.parts)
        return accountant.steps, untold


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_writers_lose_and_repeat_nothing(tmp_path):
    steps, _ = kill_at_random_instants(tmp_path / "ledger", 6, 1)
    assert steps > 6


@pytest.mark.slow
@pytest.mark.parametrize("sync", [True, False])
def test_hundreds_of_kills(tmp_path, sync):
    steps, untold = kill_at_random_instants(tmp_path / "ledger", SLOW_KILLS, 2, writers=3, sync=sync)
    print(f"{SLOW_KILLS} kills, {steps} steps, {untold} on file but not told of")
    assert steps > SLOW_KILLS and untold > 0


def run_code(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def written(path, **options):
    with hs.Accountant(path, **options) as accountant:
        accountant.step(SGD, 100)
        accountant.step(hs.laplace(3.0))
        accountant.step(SGD, 5)
        return accountant.run


# What is kept


def test_a_ledger_keeps_what_ran(tmp_path):
    path = tmp_path / "ledger"
    run = written(path)
    assert [p.name for p in tmp_path.iterdir()] == ["ledger"]  # closed: no log beside
    with hs.Accountant(path) as accountant:
        assert accountant.run == run and accountant.run.parts == ((SGD, 105), (hs.laplace(3.0), 1))
        assert accountant.run is accountant.run and len(accountant) == 106 and accountant.path == path
        assert accountant.epsilon(1e-5) == hs.epsilon(run, 1e-5) and "ledger" in repr(accountant)
        state = json.loads(json.dumps(accountant.state_dict()))
    memory = hs.Accountant()
    memory.load_state_dict(state)
    assert memory.run.parts == run.parts and memory.state_dict() == state


def test_every_kind_of_step_is_kept(tmp_path):
    with hs.Accountant(tmp_path / "ledger") as accountant:
        for i, step in enumerate(EVERY):
            accountant.step(step, i + 1)
    with hs.Accountant(tmp_path / "ledger") as accountant:
        assert accountant.run.parts == tuple((step, i + 1) for i, step in enumerate(EVERY))


def test_steps_of_functions_go_by_their_name(tmp_path):
    from scipy.special import ndtr

    before = dict(REGISTERED)
    step = hs.from_loss_cdf(lambda x: ndtr(x - 0.5), lambda x: ndtr(x + 0.5))
    path = tmp_path / "ledger"
    try:
        with hs.Accountant(path) as accountant:
            with pytest.raises(hs.DomainError, match=r"hs\.register"):
                accountant.step(step)
            assert accountant.steps == 0
            hs.register("mine", step)
            accountant.step(step, 2)
            accountant.step(step)
        with hs.Accountant(path) as accountant:
            assert accountant.run == step * 3
        REGISTERED.clear()
        with hs.Accountant(path) as accountant, pytest.raises(hs.StoreError, match="mine"):
            _ = accountant.run
    finally:
        REGISTERED.clear()
        REGISTERED.update(before)


def test_a_pickle_is_the_path(tmp_path):
    with hs.Accountant(tmp_path / "ledger", limit=(2.0, 1e-5)) as accountant:
        with pickle.loads(pickle.dumps(accountant)) as other:
            other.step(SGD, 3)
            assert accountant.run == other.run == SGD * 3 and other.limit == (2.0, 1e-5)
        text = pickle.dumps(accountant)
    (tmp_path / "ledger").unlink()
    with pytest.raises(hs.StoreError, match="is gone"):
        pickle.loads(text)


def test_a_closed_accountant_takes_nothing(tmp_path):
    accountant = hs.Accountant(tmp_path / "ledger")
    accountant.step(SGD)
    accountant.close()
    for use in (lambda: accountant.step(SGD), lambda: accountant.run, lambda: accountant.epsilon(1e-5)):
        with pytest.raises(hs.StoreError, match="is closed"):
            use()


def test_a_ledger_only_grows(tmp_path):
    with hs.Accountant(tmp_path / "ledger") as accountant:
        accountant.step(SGD, 7)
        with pytest.raises(hs.DomainError, match="only grows"):
            accountant.load_state_dict(hs.Accountant().state_dict())
        assert accountant.steps == 7


def test_what_is_refused_is_not_recorded(tmp_path):
    with hs.Accountant(tmp_path / "ledger") as accountant:
        accountant.step(hs.gaussian(2.0), 10**12)
        for bad in (1.0, hs.compose(hs.gaussian(1.0), hs.gaussian(2.0))):
            with pytest.raises(hs.DomainError):
                accountant.step(bad)
        assert accountant.run == hs.gaussian(2.0) * 10**12
    with hs.Accountant(tmp_path / "ledger") as accountant:
        assert accountant.run == hs.gaussian(2.0) * 10**12


def test_many_distinct_steps_are_not_added_up_again(tmp_path):
    """Both processes keep the moments of what either records, and read no row twice."""
    steps = [hs.poisson_subsampled(hs.gaussian(1 + i / 300), 0.01) for i in range(200)]
    memory = hs.Accountant(limit=(20.0, 1e-6))
    path = tmp_path / "ledger"
    with hs.Accountant(path, sync=False, limit=(20.0, 1e-6)) as one, hs.Accountant(path, sync=False) as other:
        for i, step in enumerate(steps):
            (one, other)[i % 2].step(step, 100)
            memory.step(step, 100)
        asked_once = memory.epsilon(1e-6)
        for accountant in (one, other):
            assert isinstance(accountant.run, RecordedRun) and accountant.run == memory.run
            assert accountant.run.step_moments("add_remove") == memory.run.step_moments("add_remove")
            assert accountant.epsilon(1e-6) == asked_once
            assert accountant.steps_left(steps[0]) == memory.steps_left(steps[0]) > 0
        before = one.run
        other.step(steps[3], 7)
        assert before.steps == 20_000 and one.steps == 20_007 and one.run == other.run
        rows = ledger._ROWS + " WHERE revision > 3"
        plan = one._ledger._connection.execute(f"EXPLAIN QUERY PLAN {rows}").fetchall()
        assert "USING INDEX latest" in str(plan)
    with hs.Accountant(path) as again:
        assert again.run == one._known()


# Limits


def test_a_limit_is_kept():
    accountant = hs.Accountant(limit=(1.0, 1e-5))
    most = hs.max_steps(sigma=1.0, q=0.01, eps=1.0, delta=1e-5).value
    assert accountant.steps_left(SGD) == most and not accountant.would_exceed(SGD * most)
    with pytest.raises(hs.LimitError, match=r"delta in \[1\.01.*limit is delta=1e-05.*do not run"):
        accountant.step(SGD, most + 1)
    assert accountant.steps == 0
    accountant.step(SGD, most - 2)
    assert (
        accountant.steps_left(SGD) == 2 and accountant.steps_left(SGD * 2) == 1 and accountant.steps_left(SGD * 3) == 0
    )
    accountant.step(SGD, 2)
    assert accountant.would_exceed(SGD) and accountant.steps_left(SGD) == 0
    assert accountant.steps == most and accountant.epsilon(1e-5).upper <= 1.0
    with pytest.raises(hs.LimitError):
        accountant.step(hs.gaussian(20.0))
    copy = pickle.loads(pickle.dumps(accountant))
    assert copy.limit == accountant.limit and copy.run == accountant.run


def test_what_is_left_of_any_target():
    accountant = hs.Accountant()
    accountant.step(hs.gaussian(10.0), 2)
    for eps, delta in ((1.5, 1e-6), (1.0, 1e-5), (0.1, 1e-9)):
        left = accountant.steps_left(SGD, epsilon=eps, delta=delta)
        whole = accountant.run + SGD * left if left else accountant.run
        assert left == 0 or hs.delta(whole, eps).upper <= delta
        assert hs.delta(whole + SGD, eps).upper > delta
        assert accountant.would_exceed(SGD, eps=eps, delta=delta) == (left == 0)
    assert accountant.steps_left(hs.gaussian(1e9), eps=5.0, delta=1e-5) == 10**12
    assert accountant.steps_left(hs.compose(), eps=5.0, delta=1e-5) == 10**12
    with pytest.raises(hs.DomainError, match="no limit"):
        accountant.would_exceed(SGD)
    for eps, delta in ((1.0, None), (None, 1e-5), (-1.0, 1e-5), (1.0, 1.0)):
        with pytest.raises(hs.DomainError):
            accountant.steps_left(SGD, eps=eps, delta=delta)


def test_the_adjacency_of_an_accountant(tmp_path):
    accountant = hs.Accountant(limit=(1.0, 1e-5), adjacency="replace_one")
    left = accountant.steps_left(hs.gaussian(20.0))
    assert accountant.steps_left(hs.gaussian(20.0), adjacency="add_remove") > left > 0
    accountant.step(hs.gaussian(20.0), left)
    assert accountant.epsilon(1e-5) == hs.epsilon(accountant.run, 1e-5, adjacency="replace_one")
    assert accountant.delta(1.0, adjacency="add_remove") == hs.delta(accountant.run, 1.0)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"limit": 1.0}, "pair"), ({"limit": (1.0, 1e-5, 3)}, "pair"), ({"limit": (-1.0, 1e-5)}, "0 <= epsilon"),
        ({"limit": (float("nan"), 1e-5)}, "0 <= epsilon"), ({"limit": (1.0, 0.0)}, "0 < delta"),
        ({"limit": (1.0, 1.0)}, "delta < 1"), ({"limit": ("1", 1e-5)}, "real number"),
        ({"adjacency": "swap"}, "one of"), ({"sync": 1}, "True or False"),
    ],
)  # fmt: skip
def test_bad_arguments_make_no_file(tmp_path, options, message):
    with pytest.raises(hs.DomainError, match=message):
        hs.Accountant(tmp_path / "ledger", **options)
    assert not list(tmp_path.iterdir())


def test_a_ledger_keeps_its_limit(tmp_path):
    path = tmp_path / "ledger"
    written(path, limit=(5.0, 1e-5), adjacency="replace_one")
    before = snapshot(tmp_path)
    for options in ({"limit": (5.0, 1e-6)}, {"adjacency": "add_remove"}):
        with pytest.raises(hs.StoreError, match=r"was made with limit=\(5\.0, 1e-05\), adjacency='replace_one'"):
            hs.Accountant(path, **options)
    assert snapshot(tmp_path) == before
    with hs.Accountant(path) as same, hs.Accountant(path, limit=(5, 1e-5), adjacency="replace_one") as other:
        assert same.limit == other.limit == (5.0, 1e-5) and same.adjacency == "replace_one"
    written(tmp_path / "free")
    with pytest.raises(hs.StoreError, match="limit=None"):
        hs.Accountant(tmp_path / "free", limit=(1.0, 1e-5))


FILLER = """
import sys
import hockeystick as hs
accountant, n = hs.Accountant(sys.argv[1], sync=False), 0
try:
    while True:
        accountant.step(hs.poisson_subsampled(hs.gaussian(1.0), 0.01), 3)
        n += 3
except hs.LimitError:
    print(n)
"""


def test_processes_fill_one_limit_together(tmp_path):
    path = tmp_path / "ledger"
    hs.Accountant(path, limit=(1.0, 1e-5)).close()
    children = [run_code(FILLER, path) for _ in range(3)]
    done = [int(child.communicate(timeout=100)[0]) for child in children]
    with hs.Accountant(path) as accountant:
        assert accountant.steps == sum(done) == 252 and accountant.steps_left(SGD) == 2


# Several writers

COUNTER = """
import sys
import hockeystick as hs
path, own, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
accountant = hs.Accountant(path, sync=False)
for i in range(n):
    accountant.step(hs.gaussian(1.0))
    accountant.step(hs.gaussian(2.0 + own + i / n))
    accountant.step(hs.laplace(3.0), 2)
assert accountant.steps >= 4 * n
"""


def test_writers_at_once(tmp_path):
    """They make the file at once, too."""
    path, n, writers = tmp_path / "ledger", 60, 4
    children = [run_code(COUNTER, path, own, n) for own in range(writers)]
    for child in children:
        assert child.wait(timeout=100) == 0, child.stderr.read()
    counts = {hs.gaussian(1.0): n * writers, hs.laplace(3.0): 2 * n * writers}
    counts |= {hs.gaussian(2.0 + own + i / n): 1 for own in range(writers) for i in range(n)}
    with hs.Accountant(path) as accountant:
        assert dict(accountant.run.parts) == counts
    assert [p.name for p in tmp_path.iterdir()] == ["ledger"]


def test_accountants_of_one_process_share_a_ledger(tmp_path):
    path = tmp_path / "ledger"
    accountants = [hs.Accountant(path, sync=False) for _ in range(4)]
    errors = []

    def record(i):
        try:
            for _ in range(50):
                accountants[i % 4].step(SGD)
                assert accountants[i % 4].steps > 0
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=record, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and {accountant.steps for accountant in accountants} == {400}
    for accountant in accountants:
        accountant.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on(tmp_path):
    """Parent and child are two processes that charge one ledger; neither takes the other's locks for its own."""
    with hs.Accountant(tmp_path / "ledger", sync=False) as accountant:
        accountant.step(SGD)
        children = []
        for _ in range(3):
            child = os.fork()
            if not child:
                try:
                    for _ in range(40):
                        accountant.step(SGD)
                    if _ == 2:
                        accountant.close()
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            children.append(child)
        for _ in range(40):
            accountant.step(SGD)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
        assert accountant.steps == 161
    with hs.Accountant(tmp_path / "ledger") as accountant:
        assert accountant.steps == 161


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_middle_of_a_step(tmp_path, monkeypatch):
    with hs.Accountant(tmp_path / "ledger", sync=False) as accountant:
        real = hs.Accountant._admitted

        def forking(self, *given):
            child = os.fork()
            if not child:
                try:
                    with accountant._ledger.recording(accountant._keep):
                        pass
                except hs.StoreError as error:
                    os._exit(7 if "forked" in str(error) else 1)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            return real(self, *given)

        monkeypatch.setattr(hs.Accountant, "_admitted", forking)
        accountant.step(SGD)
        monkeypatch.undo()
        accountant.step(SGD)
        assert accountant.steps == 2


def test_a_step_waits_for_others(tmp_path, monkeypatch):
    path = tmp_path / "ledger"
    written(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(ledger, "LOOK", 0.02)
    monkeypatch.setattr(ledger, "PATIENCE", 0.2)
    with hs.Accountant(path) as accountant:
        with pytest.raises(hs.StoreError, match="locked; nothing was charged"):
            accountant.step(SGD)
        assert accountant.steps == 106  # reading does not wait
        monkeypatch.setattr(ledger, "PATIENCE", 60.0)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            accountant.step(SGD)
        release = threading.Timer(0.2, lambda: None)
        release.start()
        other.execute("ROLLBACK")
        other.close()
        accountant.step(SGD)
        assert accountant.steps == 107


def test_an_interrupted_step_is_not_recorded(tmp_path, monkeypatch):
    with hs.Accountant(tmp_path / "ledger") as accountant:
        accountant.step(SGD, 3)
        for name in ("_admitted",):
            monkeypatch.setattr(hs.Accountant, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                accountant.step(SGD)
            monkeypatch.undo()
        real = ledger.StepLedger._write

        def late(self, *given):
            real(self, *given)
            raise KeyboardInterrupt

        monkeypatch.setattr(ledger.StepLedger, "_write", late)
        with pytest.raises(KeyboardInterrupt):
            accountant.step(hs.laplace(1.0))
        monkeypatch.undo()
        assert accountant.run == SGD * 3
        accountant.step(hs.laplace(2.0))
        assert accountant.run == SGD * 3 + hs.laplace(2.0)


# Files that are not ours, or not whole


def test_a_damaged_file_keeps_its_log(tmp_path):
    """Also where a killed process left a log: nothing is written back."""
    path = tmp_path / "ledger"
    code = "import sys, os, hockeystick as hs; a = hs.Accountant(sys.argv[1]); a.step(hs.gaussian(1.0)); os._exit(0)"
    assert run_code(code, path).wait(timeout=60) == 0
    before = snapshot(tmp_path)
    assert before["ledger-wal"]
    spoiled = bytearray(before["ledger"])
    spoiled[60:64] = (2).to_bytes(4, "big")  # the version
    path.write_bytes(spoiled)
    with pytest.raises(hs.StoreError, match="version 2"):
        hs.Accountant(path)
    assert snapshot(tmp_path) == before | {"ledger": bytes(spoiled)}
    path.write_bytes(before["ledger"])
    with hs.Accountant(path) as accountant:
        assert accountant.steps == 1


def test_filters_and_ledgers_are_not_mixed_up(tmp_path):
    written(tmp_path / "ledger")
    with pytest.raises(hs.StoreError, match="Accountant, not of GDPFilter"):
        hs.GDPFilter.open(tmp_path / "ledger")
    hs.GDPFilter(budget_mu=1.0, path=tmp_path / "filter").close()
    before = snapshot(tmp_path)
    with pytest.raises(hs.StoreError, match="GDPFilter, not of Accountant"):
        hs.Accountant(tmp_path / "filter")
    assert snapshot(tmp_path) == before


def test_a_log_that_was_left_behind_is_not_taken(tmp_path):
    path = tmp_path / "ledger"
    with hs.Accountant(path) as accountant:
        accountant.step(SGD)
        path.unlink()
        with pytest.raises(hs.StoreError, match="was removed or replaced"):
            accountant.step(SGD)
        with pytest.raises(hs.StoreError, match="ledger-wal is left of a file that is gone"):
            hs.Accountant(path)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    with hs.Accountant(path) as accountant:
        written(tmp_path / "other")
        os.replace(tmp_path / "other", path)
        with pytest.raises(hs.StoreError, match="was removed or replaced"):
            accountant.step(SGD)


# Disks


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits here")
def test_a_limit_on_the_size_of_files(tmp_path):
    path = tmp_path / "ledger"
    code = """
import resource, sys
import hockeystick as hs
accountant, n = hs.Accountant(sys.argv[1], sync=False), 0
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    while True:
        accountant.step(hs.gaussian(1.0 + n / 1000))
        n += 1
except hs.StoreError as error:
    assert "nothing was charged" in str(error), error
    assert accountant.steps == n
    print(n)
"""
    child = run_code(code, path)
    out, err = child.communicate(timeout=60)
    with hs.Accountant(path) as accountant:
        assert accountant.steps == int(out or -1) > 5, err
        accountant.step(SGD)


@pytest.mark.skipif(os.name != "posix", reason="permissions are another matter here")
def test_a_read_only_file_is_read(tmp_path):
    """A file system that is read-only where this machine lets us mount one, else a folder without permission to
    write."""
    path, root = tmp_path / "ledger", os.geteuid() == 0
    run = written(path)
    if root:
        for command in (["--bind", tmp_path, tmp_path], ["-o", "remount,bind,ro", tmp_path]):
            if not shutil.which("mount") or subprocess.run(["mount", *command], capture_output=True).returncode:
                pytest.skip("no read-only file system to be had")
    else:
        tmp_path.chmod(0o555)
    try:
        with hs.Accountant(path) as accountant:
            assert accountant.run == run
            with pytest.raises(hs.StoreError, match="read-only; nothing was charged"):
                accountant.step(SGD)
            assert accountant.steps == 106
        with pytest.raises(hs.StoreError, match="cannot create"):
            hs.Accountant(tmp_path / "new")
    finally:
        gc.collect()
        if root:
            subprocess.run(["umount", str(tmp_path)], check=True)
        else:
            tmp_path.chmod(0o755)
    with hs.Accountant(path) as accountant:
        assert accountant.run == run
