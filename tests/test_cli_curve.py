"""The commands that print tables, and the pictures: values as the library gives them, files that are what they say."""

import csv
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import cli, plot
from hockeystick.cli import options, tables

RUN = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 1000


def rows(capsys, *argv, status=0):
    assert cli.main(list(argv)) == status
    out = capsys.readouterr()
    if "json" in argv:
        return json.loads(out.out)["rows"]
    return list(csv.DictReader(io.StringIO(out.out)))


def test_curve(capsys):
    table = rows(capsys, "curve", "1:0.01:1000", "b=1000*gaussian(2)@0.01", "--eps", "0.5:2:4")
    assert [r["run"] for r in table] == ["sigma=1 q=0.01 steps=1000"] * 4 + ["b"] * 4
    eps = [float(r["eps"]) for r in table[:4]]
    assert eps == np.linspace(0.5, 2, 4).tolist()
    expected = hs.delta(RUN, eps)
    assert [float(r["upper"]) for r in table[:4]] == expected.upper.tolist()
    assert [float(r["lower"]) for r in table[:4]] == expected.lower.tolist()
    assert {r["route"] for r in table} == {"contour"}


def test_curve_chooses_a_range(capsys):
    table = rows(capsys, "curve", "1:0.01:1000", "--points", "5", "--format", "json", "--direction", "remove")
    assert len(table) == 5 and table[0]["eps"] == 0 and table[-1]["upper"] == pytest.approx(1e-12, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["replace_one", "zero_out"])
def test_adjacency(capsys, monkeypatch, adjacency):
    options = ("--adjacency", adjacency, "--format", "json")
    eps = rows(capsys, "along", "1:0.01:100", "--delta", "1e-5", "--points", "2", *options)[-1]
    run = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 100
    assert eps["upper"] == hs.epsilon(run, 1e-5, adjacency=adjacency).upper
    delta = rows(capsys, "curve", "1:0.01:100", "--eps", "0:1:2", *options)[-1]
    assert delta["upper"] == hs.delta(run, 1.0, adjacency=adjacency).upper
    fnr = rows(capsys, "tradeoff", "1:0.01:100", "--fpr", "0.1:0.5:2", *options)
    assert [row["upper"] for row in fnr] == hs.tradeoff(run, [0.1, 0.5], adjacency=adjacency).upper.tolist()


def test_curve_of_a_log(capsys, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("sigma,q,steps\n1,0.01,400\n1,0.01,600\n")
    one, two = (rows(capsys, "curve", run, "--eps", "1:2:2") for run in (str(log), "1:0.01:1000"))
    assert [r["upper"] for r in one] == [r["upper"] for r in two] and one[0]["run"] == str(log)


def test_json_head(capsys):
    assert cli.main(["curve", "1:0.01:10", "--eps", "0:1:2", "--format", "json"]) == 0
    head = json.loads(capsys.readouterr().out)
    keys = ["format", "version", "package", "query", "adjacency", "direction", "runs", "rows"]
    assert list(head) == keys and head["format"] == tables.FORMAT and head["query"] == "curve"


def test_tradeoff(capsys):
    table = rows(capsys, "tradeoff", "1:0.01:1000", "--fpr", "1e-12:0.9:3")
    fpr = [float(r["fpr"]) for r in table]  # of one call, whose rates share the points of the curve
    assert [float(r["upper"]) for r in table] == hs.tradeoff(RUN, fpr).upper.tolist()
    assert [float(r["tpr_lower"]) for r in table] == hs.true_positive_rate(RUN, fpr).lower.tolist()
    assert float(table[0]["fpr"]) == pytest.approx(1e-12) and float(table[-1]["fpr"]) == pytest.approx(0.9)


def test_along(capsys):
    table = rows(capsys, "along", "1:0.01:300", "2:0.01:5", "--delta", "1e-5", "--points", "4")
    assert [int(r["steps"]) for r in table] == [1, 34, 134, 300, 1, 3, 5]
    assert float(table[3]["upper"]) == hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 300, 1e-5).upper


@pytest.mark.parametrize("asked, values", [("delta", ["1e-5", "1e-7"]), ("eps", ["0.5", "1"])])
def test_batch(capsys, tmp_path, asked, values):
    file = tmp_path / "asked.csv"
    file.write_text(f"{asked},sigma,steps,q\n{values[0]},1,1000,0.01\n\n{values[1]},2,10,1\n")
    table = rows(capsys, "batch", str(file))
    assert list(table[0]) == [asked, "sigma", "steps", "q", "lower", "estimate", "upper", "route", "certified"]
    single = hs.epsilon if asked == "delta" else hs.delta
    assert float(table[0]["upper"]) == single(RUN, float(values[0])).upper
    assert float(table[1]["lower"]) == single(hs.gaussian(2.0) * 10, float(values[1])).lower


def piped(text):
    return io.TextIOWrapper(io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    "text", ["# asked\nsigma;delta\n2;1e-5\n", "delta\tsigma\r\n1e-5\t2\r\n", '{"sigma": 2, "delta": 1e-5}\n']
)
def test_batch_reads_what_logs_are_read_from(capsys, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", piped(text))
    assert rows(capsys, "batch", "-", "--format", "json")[0]["upper"] == hs.epsilon(hs.gaussian(2.0), 1e-5).upper


def test_batch_of_standard_input_and_defaults(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", piped("sigma,delta\n2,1e-5\n"))
    assert rows(capsys, "batch", "-", "--format", "json")[0]["upper"] == hs.epsilon(hs.gaussian(2.0), 1e-5).upper
    monkeypatch.setattr(sys, "stdin", piped("sigma,delta\n"))
    assert rows(capsys, "batch", "-", "--format", "json") == []


def test_bar(capsys):
    bar = options.Bar(SimpleNamespace(quiet=False))
    bar(1, 2)
    assert capsys.readouterr().err == ""  # not a terminal
    bar.shown = True
    bar(1, 2)
    bar(2, 2)
    text = capsys.readouterr().err
    assert "#" * 20 + "." * 20 + "] 1/2" in text and text.endswith("#] 2/2\n")


BAD = [
    (["curve", "1:0.01"], "No such file"),
    (["curve", "0:0.01:10"], "sigma"),
    (["curve", "1:2:10"], "q"),
    (["curve", "1:0.1:1.5"], "STEPS"),
    (["curve", "1:0.1:10", "--eps", "2:1:5"], "LO < HI"),
    (["curve", "1:0.1:10", "--eps", "0:nan:5"], "LO < HI"),
    (["tradeoff", "1:0.1:10", "--fpr", "0:0.5:5"], "--fpr"),
    (["tradeoff", "1:0.1:10", "--fpr", "0.5:1:5"], "--fpr"),
    (["along", "1:0.1:10", "--delta", "2"], "delta"),
    (["along", "1:0.1:10", "--delta", "1e-5", "--at", "5,11"], "--at"),
    (["batch", "/no/such/file"], "No such file"),
]


@pytest.mark.parametrize("argv, word", BAD)
def test_bad_input(capsys, argv, word):
    assert cli.main(argv) == 2
    out = capsys.readouterr()
    assert word in out.err and out.out == ""


@pytest.mark.parametrize(
    "argv", [["curve", "1:1:1", "--points", "1"], ["curve", "1:1:1", "--plot", "x.txt"], ["along", "1:1:1"]]
)
def test_bad_usage(capsys, argv):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "text, word",
    [
        ("", "header"),
        ("sigma\n1\n", "header"),
        ("sigma,delta,eps\n", "header"),
        ("sigma,delta,other\n", "header"),
        ("sigma,sigma,delta\n", "header"),
        ("sigma,delta\n1,x\n", ":2: delta must be a number, got 'x'"),
        ("sigma,delta\n1,0.1\n1,0.0", ":3: the last line has no line end"),
        ("sigma,delta\n1,0.1\n1\n", ":3: expected 2"),
        ("sigma,delta\n1,0.1\n\n1,nan\n", "<stdin>:4: delta must be in"),
        ("sigma,delta\n-1,0.1\n", "<stdin>:2: sigma must be"),
        ('{"sigma": 1, "delta": 0.1}\n{"sigma": 1}\n', ":2: every line must say sigma, delta"),
        ('{"sigma": 1, "delta": 0.1}\n{"sigma": 1, "delta": 0.1, "q": 0.1}\n', ":2: every line must say"),
        ('{"sigma": "1", "delta": 0.1}\n', ":1: sigma must be a real number"),
    ],
)
def test_bad_batch(text, word, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", piped(text))
    assert cli.main(["batch", "-"]) == 2
    import re

    assert re.search(word, capsys.readouterr().err)


def test_a_batch_cut_short_is_answered_if_asked(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", piped("sigma,delta\n1,0.1"))
    assert len(rows(capsys, "batch", "-", "--allow-unterminated")) == 1


# Pictures


def signature(path):
    return path.read_bytes()[:5]


@pytest.mark.parametrize("kind, magic", [("png", b"\x89PNG\r"), ("pdf", b"%PDF-"), ("svg", b"<?xml")])
def test_plot_files(capsys, tmp_path, kind, magic):
    pytest.importorskip("matplotlib")
    for argv in (["curve", "1:0.01:10"], ["tradeoff", "1:0.01:10"], ["along", "1:0.01:10", "--delta", "1e-5"]):
        path = tmp_path / f"{argv[0]}.{kind}"
        assert rows(capsys, *argv, "--points", "5", "--plot", str(path))
        assert signature(path) == magic


def test_figures_hold_the_bounds():
    pytest.importorskip("matplotlib")
    eps = np.linspace(0, 3, 7)
    axes = plot.privacy_curve({"a": RUN, "b": hs.gaussian(3.0)}, eps).axes[0]
    bound = hs.delta(RUN, eps)
    assert (
        axes.lines[0].get_ydata().tolist() == bound.estimate.tolist()
        and axes.lines[0].get_xdata().tolist() == eps.tolist()
    )
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == bound.upper.max() and band.min() == bound.lower.min()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert axes.get_yscale() == "log"
    figure = plot.tradeoff_curve({"a": RUN}, [1e-12, 0.5])
    assert figure.axes[0].get_xlim()[0] < 1e-12 and len(figure.axes[0].lines) == 2
    axes = plot.epsilon_over_steps({"a": (1.0, 0.01)}, [1, 10, 100], 1e-5).axes[0]
    assert (
        axes.lines[0].get_ydata()[-1] == hs.epsilon(hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 100, 1e-5).estimate
    )


def test_a_wide_band_is_said():
    pytest.importorskip("matplotlib")
    x = np.array([0.0, 1.0])
    wide = hs.Bound(np.array([0.1, 0.0]), np.array([0.2, 0.0]), np.array([0.3, 0.0]), "prv", True, hs.Budget({}))
    legend = plot.draw_privacy([plot.Series("wide", x, wide)]).axes[0].get_legend()
    assert legend.get_title().get_text() == r"certified, $\delta$ within 67%"


def test_without_matplotlib(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert cli.main(["curve", "1:0.01:10", "--points", "3", "--plot", "x.png"]) == 2
    assert "hockeystick[plot]" in capsys.readouterr().err


@pytest.mark.parametrize("bad", [None, {}, [RUN], {"a": 1}])
def test_bad_runs(bad):
    with pytest.raises(hs.DomainError):
        plot.privacy_curves(bad)


def test_powers():
    assert [plot._power(x) for x in (1e-5, 2.5e-7, 0.01, 1e-300)] == [
        "10^{-5}",
        "2.5 \\cdot 10^{-7}",
        "0.01",
        "10^{-300}",
    ]
