"""The command `hockeystick individual`."""

import json
import subprocess
import sys

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import cli
from hockeystick.individual import NoiseLevels, individual_epsilons


def call(capsys, *argv):
    try:
        status = cli.main(["individual", *map(str, argv)])
    except SystemExit as leave:  # argparse
        status = leave.code
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def norms(tmp_path):
    table = np.random.default_rng(0).random((50, 20)).astype(np.float32)
    np.save(tmp_path / "norms.npy", table)
    np.savetxt(tmp_path / "norms.csv", table, delimiter=",", header=",".join(f"s{i}" for i in range(20)), comments="")
    np.savetxt(tmp_path / "bare.csv", table, delimiter=",")
    return tmp_path, table


def test_plain_noise(capsys, norms):
    folder, table = norms
    status, out, err = call(
        capsys, folder / "norms.npy", "--noise", 5, "--delta", 1e-5, "--format", "json", "--out", folder / "eps.npy"
    )
    assert (status, err) == (0, "")
    result, eps = json.loads(out), np.load(folder / "eps.npy")
    assert (result["format"], result["records"], result["steps"]) == ("hockeystick.result", 50, 20)
    assert result["private"] and "ex post" in result["label"]
    for i in (0, 17, 49):
        mu = np.sqrt((table[i].astype(float) ** 2).sum()) / 5
        bound = hs.epsilon(hs.gaussian(1 / mu), 1e-5)
        assert bound.lower <= eps[i] <= bound.upper * (1 + 1e-4)
    shown = [row["upper"] for row in result["rows"]]
    assert shown == sorted(shown) and shown[0] == eps.min() and shown[-1] == eps.max() <= result["worst_case_upper"]


@pytest.mark.parametrize("name", ["norms.csv", "bare.csv"])
def test_csv_says_what_the_array_says(capsys, norms, name):
    folder, _ = norms
    options = ("--noise-multiplier", 2, "--clip", 0.5, "--delta", 1e-5, "--format", "json")
    a, b = (json.loads(call(capsys, folder / file, *options)[1]) for file in ("norms.npy", name))
    assert a["rows"][3]["upper"] == pytest.approx(b["rows"][3]["upper"], rel=1e-6)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_with_other_separators(capsys, norms, separator):
    folder, _ = norms
    options = ("--noise-multiplier", 2, "--clip", 0.5, "--delta", 1e-5, "--format", "json")
    comma = json.loads(call(capsys, folder / "norms.csv", *options)[1])
    (folder / "other.csv").write_text((folder / "norms.csv").read_text().replace(",", separator))
    assert json.loads(call(capsys, folder / "other.csv", *options)[1])["rows"] == comma["rows"]
    (folder / "other.csv").write_text("0,5;0,7\n")  # decimal commas are no numbers, and no names of columns
    status, out, err = call(capsys, folder / "other.csv", *options)
    assert (status, out) == (2, "") and ":1: neither numbers nor names of columns: '0,5;0,7'" in err
    (folder / "other.csv").write_text("a,b\n")
    assert "got float64 of shape (0, 1)" in call(capsys, folder / "other.csv", *options)[2]
    (folder / "other.csv").write_text("a,0.7\n0.5,0.7\n")
    assert ":1: neither numbers nor names of columns: 'a,0.7'" in call(capsys, folder / "other.csv", *options)[2]


def test_a_table_cut_short_is_refused_unless_asked(capsys, norms):
    folder, _ = norms
    for name in ("norms.csv", "bare.csv"):
        cut, flags = folder / f"cut_{name}", ("--noise", 5, "--delta", 1e-5)
        cut.write_bytes((folder / name).read_bytes()[:-5])
        lines = len(cut.read_text().splitlines())
        status, out, err = call(capsys, cut, *flags)
        assert (status, out) == (2, "") and f"{cut}:{lines}: the last line has no line end" in err
        assert call(capsys, cut, *flags, "--allow-unterminated")[0] == 0


def test_parquet(capsys, norms):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder, table = norms
    parquet.write_table(pyarrow.table({f"s{i}": table[:, i] for i in range(20)}), folder / "norms.parquet")
    options = ("--noise", 5, "--delta", 1e-5, "--format", "json")
    assert call(capsys, folder / "norms.parquet", *options)[1] == call(capsys, folder / "norms.npy", *options)[1]
    (folder / "bad.parquet").write_bytes(b"PAR1 and nothing")
    assert call(capsys, folder / "bad.parquet", *options)[0] == 2
    parquet.write_table(pyarrow.table({"s0": [1.0], "s1": [2**60 + 127]}), folder / "long.parquet")
    status, _, said = call(capsys, folder / "long.parquet", "--noise", 2**60, "--delta", 1e-5)
    assert status == 2 and "s1 must be numbers that a double holds exactly" in said


def test_sampled(capsys, norms):
    folder, table = norms
    options = ("--noise-multiplier", 1, "--clip", 1, "--q", 0.01, "--delta", 1e-5, "--steps", 50, "--format", "json")
    status, out, _ = call(capsys, folder / "norms.npy", *options, "--out", folder / "eps.npy")
    assert status == 0
    levels, counts = NoiseLevels(float(table.max() * (1 + 4 * 2.0**-53))), np.zeros((50, 32), int)
    for column in table.T.astype(float):
        levels.add(counts, column)
    library = individual_epsilons(counts * 50, sigmas=levels.sigmas, q=0.01, delta=1e-5).upper
    assert np.load(folder / "eps.npy") == pytest.approx(library, rel=1e-6)
    assert json.loads(out)["worst_case_upper"] > library.max()


def test_text_and_plot(capsys, norms):
    folder, _ = norms
    pytest.importorskip("matplotlib")
    status, out, _ = call(capsys, folder / "norms.npy", "--noise", 5, "--delta", 1e-5, "--plot", folder / "h.png")
    assert status == 0 and "50 records" in out and "not for release" in out and "worst case" in out
    assert (folder / "h.png").read_bytes().startswith(b"\x89PNG")
    assert call(capsys, folder / "norms.npy", "--noise", 5, "--delta", 1e-5, "--plot", folder / "h.nothing")[0] == 2


def test_progress_bar_on_a_terminal(capsys, norms, monkeypatch):
    from hockeystick.cli import records

    folder, _ = norms
    clock = iter(range(1000))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(records.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(records, "BLOCK", 10)
    status, _, err = call(capsys, folder / "norms.npy", "--noise", 5, "--delta", 1e-5)
    assert status == 0 and "50/50 records" in err and err.endswith("\n")
    assert call(capsys, folder / "norms.npy", "--noise", 5, "--delta", 1e-5, "--quiet")[2] == ""


def test_bad_usage(capsys, norms):
    folder, table = norms
    good = folder / "norms.npy"
    np.save(folder / "neg.npy", -table)
    np.save(folder / "nan.npy", table * np.nan)
    np.save(folder / "deep.npy", table[None])
    np.save(folder / "text.npy", np.array(["a"]))
    np.save(folder / "none.npy", table[:0])
    (folder / "junk.npy").write_bytes(b"junk")
    (folder / "junk.csv").write_text("a,b\n1,x\n")
    (folder / "norms.txt").write_text("1")
    flags = ("--noise", 1, "--delta", 1e-5)
    for path in (
        "neg.npy",
        "nan.npy",
        "deep.npy",
        "text.npy",
        "none.npy",
        "junk.npy",
        "junk.csv",
        "norms.txt",
        "nowhere.npy",
    ):
        status, out, err = call(capsys, folder / path, *flags)
        assert (status, out) == (2, "") and err.startswith("hockeystick: error:"), path
    for bad in (
        (good, "--delta", 1e-5),
        (good, "--noise", 0, "--delta", 1e-5),
        (good, "--noise", "nan", "--delta", 1e-5),
        (good, "--noise", 1, "--delta", 0),
        (good, "--noise", 1, "--delta", 2),
        (good, "--noise-multiplier", 1, "--delta", 1e-5),
        (good, *flags, "--q", 0),
        (good, *flags, "--q", 0.1, "--route", "best"),
        (good, *flags, "--steps", 0),
        (good, "--noise", 1),
        (good, *flags, "--rtol", 1e-3),
        (good, *flags, "--adjacency", "zero_out"),
    ):
        status, out, err = call(capsys, *bad)
        assert (status, out) == (2, "") and err, bad


def test_as_a_process(norms):
    folder, _ = norms
    command = [
        sys.executable,
        "-m",
        "hockeystick",
        "individual",
        str(folder / "norms.npy"),
        "--noise",
        "5",
        "--delta",
        "1e-5",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "50 records" in done.stdout and done.stderr == ""
    listed = subprocess.run([sys.executable, "-m", "hockeystick", "--help"], capture_output=True, text=True, timeout=60)
    assert "individual" in listed.stdout
