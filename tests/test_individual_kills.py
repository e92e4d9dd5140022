"""A process that dies at any instant, or is interrupted: nothing acknowledged is lost, nothing is charged twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import test_individual_store as store
from damage import snapshot
from hockeystick.individual import data
from test_individual_store import N, run_step, start, state_of, words_of

WRITER = """
import sys
import numpy as np
import hockeystick as hs
sys.path.insert(0, {here!r})
import test_individual_store
from test_individual_store import run_step, start
kind, path, test_individual_store.N = sys.argv[1], sys.argv[2], int(sys.argv[3])
filter = start(kind, path)
print("ready", filter.steps, flush=True)
while True:
    run_step(kind, filter, filter.steps + 1)
    sys.stdout.write("%d\\n" % filter.steps)
    sys.stdout.flush()
"""


def kill_at_random_instants(kind, path, kills, seed):
    """Kill writers at random instants, a fifth of them anywhere from their start on, the others after a step; after
    each, reopen and hold the state against a replay in memory. Returns the steps done, and how often one was not
    announced yet."""
    rng = np.random.default_rng(seed)
    replay, acknowledged, mid_step = start(kind), 0, 0
    start(kind, path).close()
    code = WRITER.format(here=str(Path(__file__).parent))
    for _ in range(kills):
        command = [sys.executable, "-c", code, kind, str(path), str(store.N)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if rng.random() < 0.8:
            assert child.stdout.readline().startswith(b"ready"), "the writer could not open the file"
            acknowledged = int(child.stdout.readline())
            time.sleep(rng.exponential(0.02))
        else:
            time.sleep(rng.uniform(0.0, 0.4))
        child.send_signal(signal.SIGKILL)
        out, err = child.stdout.read(), child.stderr.read()
        child.wait()
        assert not err
        acknowledged = max(
            [acknowledged, *(int(line) for line in out.split(b"\n")[:-1] if not line.startswith(b"ready"))]
        )
        with start(kind, path) as filter:
            assert acknowledged <= filter.steps <= acknowledged + 1  # one may be on file and not yet announced
            mid_step += filter.steps > acknowledged
            acknowledged = filter.steps
            while replay.steps < filter.steps:
                run_step(kind, replay, replay.steps + 1)
            assert state_of(filter) == state_of(replay)
    return acknowledged, mid_step


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("kind", ["records", "gdp", "odometer"])
def test_killed_writers_lose_and_repeat_nothing(tmp_path, kind):
    kills = 5 if kind == "records" else 2  # the others differ in what a row says only
    steps, _ = kill_at_random_instants(kind, tmp_path / "state", kills, 1)
    assert steps > 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("n", [20_000, 2_000_000])
def test_hundreds_of_kills(tmp_path, monkeypatch, n):
    monkeypatch.setattr(store, "N", n)
    steps, mid_step = kill_at_random_instants("records", tmp_path / "state", 300, 2)
    assert steps > 200 and mid_step > 0


@pytest.mark.parametrize("last", [4, 5])  # a step over all, one over some
@pytest.mark.parametrize("first", [0, 1])  # another step over all before: words turn there and back
def test_a_step_that_was_done_in_part_is_finished(tmp_path, monkeypatch, first, last):  # [theory: individual.turn]
    """Whatever part of the words is new when the process dies after the acknowledgement, opening does the rest only."""
    path, replay = tmp_path / "state", start("records")
    steps = [1] * first + [1, 2, 3, last]
    with start("records", path) as filter:
        for step in steps[:-1]:
            run_step("records", filter, step)
        old = filter._spent.copy()
        monkeypatch.setattr(data.Words, "_let_go", lambda self: None)
        run_step("records", filter, last)
        new = filter._spent.copy()
    monkeypatch.undo()
    for step in steps:
        run_step("records", replay, step)
    kept, rng, words = (
        (tmp_path / "state.step").read_bytes(),
        np.random.default_rng(0),
        np.memmap(words_of(path), np.int64, "r+"),
    )
    *_, size, kind = data._STEP.unpack(kept[: data._STEP.size])
    kept = kept[: data.HEADER + kind * size]  # a larger step before left more room
    assert size and (old != new).any()
    for share in (0.0, 0.5, 1.0):
        (tmp_path / "state.step").write_bytes(kept)
        words[512:] = np.where(rng.random(N) < share, new, old)
        if share < 1:  # what is kept is not what was acknowledged
            one_bit, sign = (kept[:-1] + bytes([kept[-1] ^ bit]) for bit in (64, 128))
            # its identity is random: a fixed byte may be there already
            foreign = kept[:30] + bytes([kept[30] ^ 1]) + kept[31:]
            for spoiled in (one_bit, sign, kept[:-8], kept[:4096], foreign):
                (tmp_path / "state.step").write_bytes(spoiled)
                before = snapshot(tmp_path)
                with pytest.raises(hs.StoreError, match="corrupted"):
                    start("records", path)
                assert snapshot(tmp_path) == before
            (tmp_path / "state.step").write_bytes(kept)
        for _ in range(2):
            with start("records", path) as filter:
                assert state_of(filter) == state_of(replay)
            assert (tmp_path / "state.step").stat().st_size == 4096
    with start("records", path) as filter:
        for each in (filter, replay):
            run_step("records", each, 4)
        assert state_of(filter) == state_of(replay)


@pytest.mark.parametrize(("step", "where"), [(1, "_sweep"), (2, "_put")])
def test_an_interrupted_step_is_not_gone_over(tmp_path, monkeypatch, step, where):
    """Control-C after the acknowledgement, before the words have changed: this process goes no further, opening
    finishes it."""
    real, path = getattr(hs.IndividualGDPFilter, where), tmp_path / "state"

    def interrupted(self, *given, look=False, **rest):
        if look:
            return real(self, *given, look=True)
        raise KeyboardInterrupt

    with start("records", path) as filter:
        monkeypatch.setattr(hs.IndividualGDPFilter, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_step("records", filter, step)
        monkeypatch.undo()
        with pytest.raises(hs.StoreError, match="interrupted; close the filter and open it again"):
            run_step("records", filter, 2)
    replay = start("records")
    run_step("records", replay, step)
    with start("records", path) as filter:
        assert filter.steps == 1 and filter._look(None).tobytes() == replay._look(None).tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="words are forced to disk another way elsewhere")
def test_words_that_cannot_be_forced_to_disk_are_forced_later(tmp_path, monkeypatch):
    """The step is acknowledged and kept; no other one is written over it before its words are on disk."""
    calls = []

    def broken(*_):
        calls.append(1)
        raise OSError(5, "Input/output error")

    with start("records", tmp_path / "state") as filter:
        filter._words.sync = True
        real = data._fdatasync
        monkeypatch.setattr(
            data, "_fdatasync", lambda file: real(file) if file != filter._words._words_file else broken()
        )
        run_step("records", filter, 1)
        with pytest.raises(hs.StoreError, match="Input/output error; nothing was charged"):
            run_step("records", filter, 2)
        assert filter.steps == 1 and len(calls) == 2
        monkeypatch.undo()
        run_step("records", filter, 2)
    with start("records", tmp_path / "state") as filter:
        assert filter.steps == 2


def test_a_step_written_over_is_not_done_again(tmp_path, monkeypatch):
    """After a loss of power the head of the last step may be on disk with what the next one wrote behind it: its words
    are."""
    path, replay = tmp_path / "state", start("records")
    with start("records", path) as filter:
        monkeypatch.setattr(data.Words, "_let_go", lambda self: None)
        for each in (filter, replay):
            run_step("records", each, 1)
    monkeypatch.undo()
    with open(tmp_path / "state.step", "r+b") as stream:
        stream.seek(data.HEADER)
        stream.write(np.ones(N, np.float32).tobytes())
    with start("records", path) as filter:
        assert state_of(filter) == state_of(replay)
        for each in (filter, replay):
            run_step("records", each, 2)
        assert state_of(filter) == state_of(replay)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_lets_go_of_nothing(tmp_path):
    with start("records", tmp_path / "state") as filter:
        run_step("records", filter, 1)
        child = os.fork()
        if not child:
            filter.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (tmp_path / "state.step").stat().st_size > data.HEADER
    assert (tmp_path / "state.step").stat().st_size == data.HEADER
