"""Logs read by blocks say what they say line by line, errors included; Parquet says what CSV says; memory."""

import io
import json
import random
import subprocess
import sys

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import logs, tally
from hockeystick.arrays import ColumnsRun

VALUES = {
    "sigma": ["1.0", "1.5", " 2.25", "0.7", "1e1", "1.25"],
    "q": ["0.01", "0.02", "1"],
    "steps": ["1", "3", "10.0"],
    "sampler": ["poisson", "", "Poisson-sampling"],
    "dataset_size": ["1000", "10000"],
    "batch_size": ["10", "100.5"],
    "adjacency": ["add_remove", ""],
    "loss": ["0.1", "nan", "x y"],
}
ODD = {
    "sigma": ["0", "-1", "nan", "1_0", "x", "", "1e-9", '"1.5"', "٣"],
    "q": ["0", "1.1", "inf", "1e-300", ""],
    "steps": ["0", "1.5", "1e13", "-1", "9e11"],
    "step": ["7", "-1", "0.5", "1e30"],
    "sampler": ["shuffle", "none", "truncated_poisson", "nonsense"],
    "dataset_size": ["0", "12.5", "1e40"],
    "batch_size": ["-3", "1e9"],
    "adjacency": ["replace_one", "both"],
    "loss": ["a,b", "# no", "é", "x" * 5000],
}
WHOLE = ["", "   ", "# a comment", "sigma,q", "1.0", "{}", "\ufeff1.0,0.1"]


@pytest.fixture
def small(monkeypatch):
    """Blocks of a few lines, and columns from a few steps on."""
    monkeypatch.setattr(logs, "BLOCK", 7)
    monkeypatch.setattr(tally, "DISTINCT", 5)
    monkeypatch.setattr(tally, "ROOM", 20)


def rows_of(dice, n, odd):
    names = ["sigma", *dice.sample([name for name in VALUES if name != "sigma"], dice.randint(0, 4))]
    if "batch_size" in names and "dataset_size" in names and "q" in names:
        names.remove("q")
    shared = {name: dice.choice(VALUES[name]) for name in names if dice.random() < 0.5}
    rows, at, first = [], dice.choice([0, 1]), dice.random() < 0.5
    for _ in range(n):
        row = {name: shared.get(name) or dice.choice(VALUES[name]) for name in names}
        if first or "step" in (rows[0] if rows else {}):
            row["step"] = str(at)
            at += int(float(row.get("steps", "1")))
        rows.append(row)
    for _ in range(odd):
        row = dice.choice(rows)
        name = dice.choice([name for name in row if name in ODD])
        row[name] = dice.choice(ODD[name])
    return rows


def csv_of(rows, dice, odd):
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    if odd and dice.random() < 0.3:
        lines.insert(dice.randint(1, len(lines)), dice.choice(WHOLE))
    return dice.choice(["\n", "\r\n"]).join([*lines, "" if dice.random() < 0.95 else "1"]).encode()


def json_of(rows, dice, odd):
    def value(text):
        try:
            return json.loads(text) if dice.random() < 0.97 else text
        except ValueError:
            return text

    return "".join(json.dumps({name: value(text) for name, text in row.items()}) + "\n" for row in rows).encode()


def outcome(data):
    """The run and what else the log says, or the error."""
    try:
        found = logs.scan(io.BytesIO(data), "log", ordered=True)
    except hs.DomainError as error:
        return str(error)
    at = [*range(1, min(40, found.run.steps)), found.run.steps]
    return (
        sorted(map(repr, found.run.parts)),
        found.run.steps,
        found.lines,
        found.columns,
        found.ignored,
        found.comments,
        [sorted(map(repr, run.parts)) for run in found.order.prefixes(at)],
    )


@pytest.mark.parametrize("seed", range(400))
def test_blocks_say_what_lines_say(small, monkeypatch, seed):
    dice = random.Random(seed)
    odd = dice.choice([0, 0, 0, 1, 2])
    data = dice.choice([csv_of, csv_of, json_of])(rows_of(dice, dice.randint(1, 60), odd), dice, odd)
    by_blocks = outcome(data)
    monkeypatch.setattr(logs._Reader, "many", lambda self, found: False)
    assert by_blocks == outcome(data)


def test_some_of_these_are_read_by_blocks_and_some_refused(small, monkeypatch):
    taken, many = [], logs._Reader.many
    monkeypatch.setattr(logs._Reader, "many", lambda self, found: taken.append(many(self, found)) or taken[-1])
    refused = 0
    for seed in range(60):
        dice = random.Random(seed)
        odd = dice.choice([0, 0, 0, 1, 2])
        data = dice.choice([csv_of, csv_of, json_of])(rows_of(dice, dice.randint(1, 60), odd), dice, odd)
        refused += isinstance(outcome(data), str)
    assert taken.count(True) > 40 and taken.count(False) > 4 and 5 < refused < 40


def columns_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 2, n), rng.choice([0.01, 0.02], n), rng.integers(1, 4, n)


def test_many_distinct_steps_are_columns():
    """The same run as from arrays, whatever else ran, with the steps of the other kinds beside it."""
    sigma, q, steps = columns_of(80_000)
    text = "sigma,q,steps\n" + "".join(map("{!r},{!r},{}\n".format, sigma.tolist(), q.tolist(), steps.tolist()))
    run = hs.read_log(io.BytesIO(text.encode()))
    assert type(run) is ColumnsRun and run == hs.compose_arrays(sigma, q, steps)
    assert hs.epsilon(run, 1e-6) == hs.epsilon(hs.compose_arrays(sigma, q, steps), 1e-6)
    plain = "sigma\n" + "".join(f"{x!r}\n" for x in sigma.tolist())
    run = hs.read_log(io.BytesIO(plain.encode()))
    assert run.columns[1].ndim == run.columns[2].ndim == 0 and run == hs.compose_arrays(sigma)


def test_verbs_make_no_object_a_line(tmp_path, monkeypatch, capsys):
    """check and along of a log that is kept as columns say what they say of the same log as objects."""
    from hockeystick.cli import main

    path, rng = tmp_path / "log.csv", np.random.default_rng(4)
    sigma, q, steps = np.repeat(rng.uniform(0.2, 2, 20), 2), rng.choice([1e-7, 0.1, 1.0], 40), rng.integers(1, 9, 40)
    rows = zip(sigma.tolist(), q.tolist(), steps.tolist(), strict=True)
    path.write_text("sigma,q,steps\n" + "".join(f"{x!r},{y!r},{n}\n" for x, y, n in rows))
    wanted = ["check"], ["along", "--delta", "1e-6", "--at", "50,101,150"]

    def said():
        assert [main([argv[0], str(path), *argv[1:]]) for argv in wanted] == [0, 0]
        return capsys.readouterr().out

    objects = said()
    monkeypatch.setattr(tally, "DISTINCT", 5)
    monkeypatch.setattr(ColumnsRun, "_first", lambda self, n: pytest.fail("objects were made"))
    assert said() == objects and "q as small as 1e-07" in objects


def test_counts_that_grow_too_large_are_refused_by_name(small):
    lines = "sigma,q,steps\n" + "".join(f"{1 + i / 64},0.1,400000000000\n" for i in range(30)) * 3
    with pytest.raises(hs.DomainError, match=r"^log:91: total count of sigma=1.0 must be at most 1e\+12, got 1.2e\+12"):
        logs.scan(io.BytesIO(lines.encode()), "log")


def test_progress_of_files_alone(tmp_path, small):
    path = tmp_path / "log.csv"
    path.write_text("sigma,q\n" + "".join(f"{1 + i / 64},0.1\n" for i in range(50)))
    told, size = [], path.stat().st_size
    hs.read_log(path, progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [size] * len(told) and told[-1][0] == size
    assert 5 < len(told) < 10 and told == sorted(set(told))
    with open(path, "rb") as stream:
        hs.read_log(io.BytesIO(stream.read()), progress=lambda *_: pytest.fail("the size is not known"))


def test_millions_of_steps_become_moments(small, tmp_path, capsys):
    """Of very many distinct steps that nobody asks for, in blocks of any size and beside steps that come again."""
    from hockeystick.cli import main

    sigma, q, steps = columns_of(300, 3)
    lines = [f"{x!r},{rate!r},{n}\n" for x, rate, n in zip(sigma.tolist(), q.tolist(), steps.tolist(), strict=True)]
    text = "sigma,q,steps\n" + "".join(lines + lines[:40])
    run = logs.scan(io.BytesIO(text.encode()), "log", listed=False).run
    listed = hs.read_log(io.BytesIO(text.encode()))
    assert not run.listed and listed.listed and run.steps == listed.steps
    assert run.step_moments("add_remove") == listed.step_moments("add_remove")
    assert logs.scan(io.BytesIO(text.encode()), "log", adjacency="replace_one", listed=False).run.listed
    path = tmp_path / "log.csv"
    path.write_text(text)
    few = ("--delta", "1e-6", "--quiet")
    assert main(["epsilon", str(path), *few]) == main(["along", str(path), *few, "--at", "9"]) == 0
    assert main(["ledger", str(tmp_path / "spent.db"), "step", "--new", str(path), *few, "--eps", "9"]) == 0
    capsys.readouterr()


def test_moments_of_more_rates_than_are_kept_apart(small, monkeypatch):
    monkeypatch.setattr("hockeystick.step_moments.RATES_MAX", 2)
    lines = [f"{1 + i / 64},{0.01 if i < 200 else 0.02 + i / 1000}\n" for i in range(300)]
    text = "sigma,q\n" + "".join(lines)
    run = logs.scan(io.BytesIO(text.encode()), "log", listed=False).run
    listed = hs.read_log(io.BytesIO(text.encode()))
    assert not run.listed and run.steps == listed.steps == 300
    assert run.step_moments("add_remove").cells and run.step_moments("add_remove") == listed.step_moments("add_remove")


MEASURED = """
import resource, sys
import hockeystick as hs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run = hs.read_log(sys.argv[1])
hs.epsilon(run, 1e-6)
print(run.steps, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kB are those of Linux")
def test_memory_of_half_a_million_steps(tmp_path):
    """Less than 60 bytes a step above what a log of one line takes, where a step of objects takes 400."""
    path, n = tmp_path / "log.csv", 500_000
    sigma = np.random.default_rng(2).uniform(1, 2, n)
    path.write_text("step,sigma,q\n" + "".join(f"{i},{x!r},0.001\n" for i, x in enumerate(sigma.tolist(), 1)))
    command = [sys.executable, "-c", MEASURED, str(path)]
    steps, more = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert steps == n and more < 60_000


# Parquet


@pytest.fixture
def written(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(columns, **types):
        path = tmp_path / "log.parquet"
        parquet.write_table(pyarrow.table({n: pyarrow.array(c, types.get(n)) for n, c in columns.items()}), path)
        return path

    return write


def test_parquet_is_read_as_csv_is(written, capsys):
    from hockeystick.cli import main

    sigma, q, steps = columns_of(40_000, 1)
    path = written({"step": np.cumsum(steps), "Sigma": sigma, "q": q, "steps": steps, "loss": ["x"] * 40_000})
    assert hs.read_log(path) == hs.compose_arrays(sigma, q, steps)
    told = []
    hs.read_log(path, progress=lambda *where: told.append(where))
    assert told == [(16384, 40_000), (32768, 40_000), (40_000, 40_000)]
    assert main(["epsilon", str(path), "--delta", "1e-6", "--quiet"]) == 0 and "certified" in capsys.readouterr().out
    assert main(["along", str(path), "--delta", "1e-6", "--at", "100,60000", "--quiet"]) == 0
    with open(path, "rb") as stream:
        assert hs.read_log(stream) == hs.read_log(path)


REFUSED = [
    ({"q": [0.1]}, 'no column "sigma"'),
    ({"sigma": [1.0], "sample_rate": [0.1]}, "looks like q"),
    ({"sigma": [1.0, None, 2.0]}, r"log.parquet:2: sigma must be a real number .*None"),
    ({"sigma": ["1.0"]}, ":1: sigma must be a real number"),
    ({"sigma": [True]}, ":1: sigma must be a real number"),
    ({"sigma": [1.0, 1e-9]}, ":2: sigma must be"),
    ({"sigma": [1.0, 2.0], "q": [0.1, 0.0]}, r":2: q \(sampling rate\) must be"),
    ({"sigma": [1.0] * 3, "step": [1, 2, 4]}, ":3: step goes from 2 to 4"),
    ({"sigma": [1.0] * 2, "sampler": ["poisson", "shuffle"]}, ":2: sampler 'shuffle'"),
    ({"sigma": [1.0], "sampler": [3]}, ":1: sampler must be text"),
    ({"sigma": [1.0], "adjacency": ["replace_one"]}, ":1: the log says adjacency"),
    ({"sigma": [1.0], "q": [0.5], "batch_size": [10], "dataset_size": [1000]}, ":1: q=0.5 is not batch_size"),
    ({"sigma": [1.0], "SIGMA": [2.0]}, "twice"),
    ({"sigma": [1.0], "steps": [2**53 + 1]}, ":1: steps must be"),
    ({"sigma": []}, "empty log"),
]


@pytest.mark.parametrize(("columns", "message"), REFUSED, ids=range(len(REFUSED)))
def test_parquet_is_refused_as_csv_is(written, columns, message):
    with pytest.raises(hs.DomainError, match=message):
        hs.read_log(written(columns))


def test_words_that_are_not_there(written):
    path = written({"sigma": [1.0, 2.0], "sampler": ["poisson", None], "q": np.array([0.1, 0.1], np.float32)})
    assert hs.read_log(path).steps == 2


def test_files_that_are_no_parquet(written, tmp_path):
    path = written({"sigma": [1.0] * 100})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(hs.DomainError, match="not a whole Parquet file"):
        hs.read_log(path)
    with subprocess.Popen([sys.executable, "-c", "print('PAR1')"], stdout=subprocess.PIPE) as piped:
        with pytest.raises(hs.DomainError, match="not from a pipe"):
            hs.read_log(piped.stdout)
