"""Durable state: reopening, kills at random instants, full disks, foreign and damaged files, two writers."""

import functools
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from damage import ANY, filled, named_and_untouched, small_disk, snapshot
from hockeystick.individual import data
from hockeystick.store import StoreError

N = 20_000


def start(kind, path=None):
    if kind == "ledger":
        return hs.Accountant(path, sync=False)
    cls, options = {
        "gdp": (hs.GDPFilter, {"budget_mu": 100.0}),
        "odometer": (hs.GDPOdometer, {"increment_mu": 1.0}),
        "records": (functools.partial(hs.IndividualGDPFilter, N), {"budget_mu": 3.0}),
    }[kind]
    if path and Path(path).exists():
        return getattr(cls, "func", cls).open(path, sync=False)
    return cls(**options, path=path, sync=False)


def run_step(kind, filter, step):
    """Step number `step` of a fixed sequence: over all records, or over some in no order."""
    rng = np.random.default_rng(step)
    if kind == "ledger":
        filter.step(hs.gaussian(10.0 + float(rng.random())))
    elif kind != "records":
        filter.charge(float(rng.random()))
    elif step % 3 == 1:
        filter.charge(rng.random(N, dtype=np.float32), sigma=2.0)
    else:
        some = rng.permutation(N)[: 1 + N // 7]
        filter.charge(rng.random(some.size), sigma=2.0, indices=some)


def state_of(filter):
    if isinstance(filter, hs.IndividualGDPFilter):
        return filter.steps, filter._look(None).tobytes()
    return filter.run if isinstance(filter, hs.Accountant) else filter._state()


def written(tmp_path, steps=4, kind="records"):
    path = tmp_path / "state"
    with start(kind, path) as filter:
        for step in range(1, steps + 1):
            run_step(kind, filter, step)
    return path


@pytest.mark.parametrize("kind", ["gdp", "odometer", "records"])
def test_a_dropped_filter_lets_its_file_go(tmp_path, kind):
    """At once, not when the garbage collector runs; in a forked child it stays with the parent."""
    path = tmp_path / "state"
    filter = start(kind, path)
    run_step(kind, filter, 1)
    kept = state_of(filter)
    gc.disable()
    try:
        if hasattr(os, "fork"):
            child = os.fork()
            if child == 0:
                del filter
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            with pytest.raises(StoreError, match="open for writing elsewhere"):
                start(kind, path)
        del filter
        with start(kind, path) as again:
            assert state_of(again) == kept
    finally:
        gc.enable()


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5])
def test_reopened_where_it_was_left(tmp_path, steps, sync):
    path, replay = tmp_path / "state", hs.IndividualGDPFilter(N, budget_mu=3.0)
    with hs.IndividualGDPFilter(N, budget_mu=3.0, path=path, sync=sync) as filter:
        for step in range(1, steps + 1):
            run_step("records", filter, step)
    with hs.IndividualGDPFilter.open(path, sync=sync) as filter:
        for step in range(1, 2 * steps + 1):
            run_step("records", replay, step)
            if step > steps:
                run_step("records", filter, step)
        assert state_of(filter) == state_of(replay)
        assert [entry["step"] for entry in filter._ledger.journal()] == list(range(1, 2 * steps + 1))


def test_files_of_others_are_not_taken(tmp_path):
    (tmp_path / "state.step").write_bytes(b"somebody's")
    with pytest.raises(hs.StoreError, match=r"state\.step exists"):
        start("records", tmp_path / "state")
    assert snapshot(tmp_path) == {"state.step": b"somebody's"}
    start("records", tmp_path / "other").close()
    (tmp_path / "other.step").write_bytes(b"somebody's")
    before = snapshot(tmp_path)
    with pytest.raises(hs.StoreError, match="not a step of hockeystick; it is left as it is"):
        start("records", tmp_path / "other")
    assert snapshot(tmp_path) == before


def test_scalar_state_survives(tmp_path):
    with hs.GDPFilter(budget_mu=1.0, sticky=True, path=tmp_path / "a") as filter:
        assert filter.charge(0.5) and not filter.charge(0.9)
    with hs.GDPFilter.open(tmp_path / "a") as filter:
        assert filter.sticky and not filter.charge(0.1) and filter.steps == 3
    with hs.RDPFilter(epsilon=2.0, delta=1e-5, path=tmp_path / "b") as filter:
        filter.charge(hs.gaussian(10.0))
        spent = filter.spent_rho_upper
    with hs.RDPFilter.open(tmp_path / "b") as filter:
        assert filter.spent_rho_upper == spent and (filter.epsilon, filter.delta) == (2.0, 1e-5)
    with hs.GDPOdometer(increment_mu=0.7, path=tmp_path / "c") as odometer:
        for _ in range(5):
            odometer.charge(0.5)
    with hs.GDPOdometer.open(tmp_path / "c") as odometer:
        assert odometer.filters == 5 and odometer.charge(0.4) == 5


def test_two_writers_are_refused(tmp_path):
    path = written(tmp_path)
    with hs.IndividualGDPFilter.open(path) as filter:
        with pytest.raises(hs.StoreError, match="open for writing elsewhere"):
            hs.IndividualGDPFilter.open(path)
        code = f"import hockeystick as hs; hs.IndividualGDPFilter.open({str(path)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert other.returncode and "StoreError" in other.stderr and "open for writing elsewhere" in other.stderr
        run_step("records", filter, 5)
        with pytest.raises(hs.StoreError, match="exists"):
            hs.IndividualGDPFilter(N, budget_mu=3.0, path=path)
    hs.IndividualGDPFilter.open(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_may_not_charge(tmp_path):
    with start("records", tmp_path / "state") as filter:
        child = os.fork()
        if not child:
            try:
                run_step("records", filter, 1)
            except hs.StoreError as error:
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        run_step("records", filter, 1)
    with hs.IndividualGDPFilter.open(tmp_path / "state") as filter:
        assert filter.steps == 1


def test_closed_filters_take_nothing(tmp_path):
    filter = start("records", tmp_path / "state")
    filter.close()
    for use in (
        lambda: filter.charge(np.ones(N), sigma=1.0),
        filter.spent_mu_upper,
        lambda: filter.epsilons_upper(1e-5),
    ):
        with pytest.raises(hs.StoreError, match="closed"):
            use()


def words_of(path):
    return Path(str(path) + ".words")


def overwritten(at, byte=None):
    """A byte of the words changed, by a bit where none is given."""

    def change(path):
        words = bytearray(words_of(path).read_bytes())
        words[at] = words[at] ^ 64 if byte is None else byte
        words_of(path).write_bytes(words)

    return change


DAMAGE = {("records", what): row for what, row in ANY.items()} | {("ledger", what): row for what, row in ANY.items()}
DAMAGE |= {
    ("records", "kind"): ("UPDATE manifest SET kind = 'gdp_filter'", "GDPFilter, not of IndividualGDPFilter"),
    ("records", "state"): ("UPDATE manifest SET state = replace(state, ': 5', ': 4')", "checksum"),
    ("records", "journal"): ("UPDATE journal SET entry = replace(entry, '2.0', '2.1') WHERE step = 2", "checksum"),
    ("records", "journal row lost"): ("DELETE FROM journal WHERE step = 3", "checksum"),
    ("records", "step missing"): (lambda path: path.with_suffix(".step").unlink(), "cannot open"),
    ("records", "words missing"): (lambda path: words_of(path).unlink(), "cannot open"),
    ("records", "words foreign"): (
        lambda path: words_of(path).write_bytes(b"x" * words_of(path).stat().st_size),
        "not a file of words",
    ),
    ("records", "words truncated"): (
        lambda path: os.truncate(words_of(path), words_of(path).stat().st_size - 4096),
        "truncated",
    ),
    ("records", "words header"): (overwritten(20, 7), "header"),
    ("records", "words flipped"): (overwritten(data.HEADER + 8 * 1234), "checksum"),
    ("ledger", "kind"): ("UPDATE manifest SET kind = 'gdp_filter'", "GDPFilter, not of Accountant"),
    ("ledger", "state"): ("UPDATE manifest SET state = replace(state, '5', '6')", "checksum of the manifest"),
    ("ledger", "parameters"): ("UPDATE manifest SET parameters = replace(parameters, 'null', '[9, 0.1]')", "checksum"),
    ("ledger", "count"): ("UPDATE steps SET count = 99 WHERE id = 1", "checksum of the steps"),
    ("ledger", "step"): ("UPDATE steps SET step = replace(step, '10.', '11.')", "checksum of the steps"),
    ("ledger", "row lost"): ("DELETE FROM steps WHERE id = 2", "checksum of the steps"),
}


@pytest.mark.parametrize("kind, what", DAMAGE)
def test_damaged_files_are_named_and_left_untouched(tmp_path, kind, what):
    path = written(tmp_path, 5, kind)  # the last step was one over some records
    named_and_untouched(path, *DAMAGE[kind, what], lambda path: start(kind, path), hs.StoreError)


def test_a_database_of_another_program_is_not_even_recovered(tmp_path):
    """One that was left with a write-ahead log: opening it the usual way would write it back."""
    code = f"""
import os, sqlite3
other = sqlite3.connect({str(tmp_path / "other")!r})
other.execute("PRAGMA journal_mode = WAL")
other.execute("CREATE TABLE t (x)")
other.commit()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    before = snapshot(tmp_path)
    assert "other-wal" in before
    with pytest.raises(hs.StoreError, match="not a state file"):
        hs.GDPFilter.open(tmp_path / "other")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind, flips", [("records", 60), ("ledger", 300)])
def test_any_flipped_bit_is_refused_or_changes_nothing(tmp_path, kind, flips):
    path, replay = written(tmp_path, 5, kind), start(kind)
    for step in range(1, 6):
        run_step(kind, replay, step)
    pristine, rng, refused = path.read_bytes(), np.random.default_rng(3), 0
    for _ in range(flips):
        spoiled = bytearray(pristine)
        spoiled[rng.integers(len(spoiled))] ^= 1 << rng.integers(8)
        path.write_bytes(spoiled)
        try:
            with start(kind, path) as filter:
                assert state_of(filter) == state_of(replay)
        except hs.StoreError:
            refused += 1
    assert refused > 5


def test_other_numbers_of_records_are_refused(tmp_path):
    path = written(tmp_path)
    with pytest.raises(hs.StoreError, match=f"holds {N} records, expected 7"):
        hs.IndividualGDPFilter.open(path, n_records=7)
    with pytest.raises(hs.StoreError, match="IndividualGDPFilter, not of GDPFilter"):
        hs.GDPFilter.open(path)
    with pytest.raises(hs.StoreError, match="nothing to open"):
        hs.GDPFilter.open(tmp_path / "nowhere")
    other = tmp_path / "other"
    hs.IndividualGDPFilter(N, budget_mu=3.0, path=other).close()
    words_of(path).write_bytes(words_of(other).read_bytes())
    with pytest.raises(hs.StoreError, match="another filter"):
        hs.IndividualGDPFilter.open(path)


@pytest.mark.parametrize("kind", ["records", "gdp", "ledger"])
def test_a_full_ledger_keeps_the_last_good_state(tmp_path, kind):
    """sqlite is told that the disk ends here: the error is the one of a full disk."""
    path, replay = tmp_path / "state", start(kind)
    with start(kind, path) as filter:
        for each in (filter, replay):
            run_step(kind, each, 1)
        pages = filter._ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        filter._ledger._connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(hs.StoreError, match="full; nothing was charged"):
            for step in range(2, 5000):
                run_step(kind, filter, step)
        assert filter.steps > 1
        good = state_of(filter)
        with pytest.raises(hs.StoreError, match="full"):
            for step in range(filter.steps + 1, filter.steps + 4):
                run_step(kind, filter, step)
    with start(kind, path) as filter:
        assert state_of(filter) == good or kind == "records"  # whose last step may have been acknowledged
        while replay.steps < filter.steps:
            run_step(kind, replay, replay.steps + 1)
        assert state_of(filter) == state_of(replay)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_disk_too_full_for_a_step_charges_nobody(tmp_path):
    """The step goes to a device that is always full."""
    path, replay = tmp_path / "state", start("records")
    with start("records", path) as filter:
        run_step("records", filter, 1)
        (tmp_path / "state.step").rename(tmp_path / "aside")
        (tmp_path / "state.step").symlink_to("/dev/full")
        for step in (2, 4):
            with pytest.raises(hs.StoreError, match="No space left on device; nothing was charged"):
                run_step("records", filter, step)
        (tmp_path / "aside").rename(tmp_path / "state.step")
        run_step("records", filter, 2)
    for step in (1, 2):
        run_step("records", replay, step)
    with start("records", path) as filter:
        assert state_of(filter) == state_of(replay)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files are written out here")
def test_a_full_disk_at_creation_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(hs.StoreError, match=r"bytes\): No space left on device"):
        hs.IndividualGDPFilter(N, budget_mu=1.0, path=tmp_path / "state")
    assert not list(tmp_path.iterdir())


def test_unwritable_places(tmp_path):
    with pytest.raises(hs.StoreError, match="cannot create"):
        hs.GDPFilter(budget_mu=1.0, path=tmp_path / "no" / "such")
    with pytest.raises(hs.StoreError, match="cannot create"):
        hs.IndividualGDPFilter(5, budget_mu=1.0, path=tmp_path / "no" / "such")
    assert isinstance(hs.StoreError("x"), OSError) and isinstance(hs.StoreError("x"), hs.HockeystickError)


@pytest.mark.parametrize("kind", ["records", "ledger"])
def test_a_disk_that_is_really_full(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(sys.modules[__name__], "N", 5000)
    replay, step = start(kind), 2
    with small_disk(tmp_path, "300k"):
        with pytest.raises(hs.StoreError, match="No space left"):
            hs.IndividualGDPFilter(50_000, budget_mu=3.0, path=tmp_path / "large")
        assert not list(tmp_path.iterdir())
        with start(kind, tmp_path / "state") as filter:
            for each in (filter, replay):
                run_step(kind, each, step)
            filled(tmp_path / "fill")
            with pytest.raises(hs.StoreError, match="nothing was charged"):
                for step in range(4, 5000):
                    run_step(kind, filter, step)
                    run_step(kind, replay, step)
            assert state_of(filter) == state_of(replay)
            with pytest.raises(hs.StoreError, match="cannot create"):
                hs.Accountant(tmp_path / "new")
            (tmp_path / "fill").unlink()
            for each in (filter, replay):
                run_step(kind, each, step)
        with start(kind, tmp_path / "state") as filter:
            assert state_of(filter) == state_of(replay)
        gc.collect()
