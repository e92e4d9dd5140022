"""The command line and the training logs it reads."""

import io
import json
import math
import pathlib
import re
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

import hockeystick as hs
from hockeystick import cli, query
from hockeystick.bound import Bound, Budget
from hockeystick.logs import RECENT_MAX, read_log
from hockeystick.textrows import LINE_MAX

DIGITS = pathlib.Path(__file__).parent / "reference" / "digits_run.csv"
ROWS = st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-12, 1.0), st.integers(1, 10**6)), max_size=20)


def step(sigma, q):
    return hs.poisson_subsampled(hs.gaussian(sigma), q)


def log(data, **allowed):
    return read_log(io.BytesIO(data if isinstance(data, bytes) else data.encode()), "log", **allowed)


def call(capsys, *argv):
    """(status, stdout, stderr) of the command run in this process."""
    try:
        status = cli.main([str(a) for a in argv])
    except SystemExit as leave:  # argparse
        status = leave.code
    out, err = capsys.readouterr()
    return status, out, err


def process(*argv, data=None):
    command = [sys.executable, "-m", "hockeystick", *map(str, argv)]
    return subprocess.run(command, input=data, capture_output=True, timeout=60)


# Logs


@given(ROWS)
def test_csv_and_json_lines_agree(rows):
    csv = "sigma,q,steps\n" + "".join(f"{s!r},{q!r},{k}\n" for s, q, k in rows)
    lines = "".join(json.dumps({"sigma": s, "q": q, "steps": k}) + "\n" for s, q, k in rows)
    run = hs.compose(*((step(s, q), k) for s, q, k in rows))
    for text in (csv, lines):
        assert log(text, allow_empty=True).parts == run.parts


@pytest.mark.parametrize(
    "data",
    [
        "sigma,q,steps\n1,0.5,3\n2,1,1\n",
        "sigma,q,steps\r\n1,0.5,3\r\n2,1,1\r\n",
        "\ufeffsigma,q,steps\n1,0.5,3\n2,1,1",
        "\n  \nsigma,q,steps\n\n1,0.5,3\n\n2,1,1\n\n",
        ' Steps , SIGMA,"q"\n 3,1.0 , .5\n"1.0",+2e0,1\n',
        "sigma,q\n1,0.5\n1,0.5\n2,1\n1,.50\n",
        '{"sigma": 1, "q": 0.5, "steps": 3}\n{"sigma": 2}\n',
        '\ufeff{"sigma": 1, "q": 0.5, "steps": 3.0}\r\n\r\n{"steps": 1, "sigma": 2, "q": 1}',
    ],
)
def test_one_run_in_many_spellings(data):
    assert log(data, allow_unterminated=True) == hs.compose((step(1.0, 0.5), 3), hs.gaussian(2.0))


def test_the_memory_of_recent_lines_may_overflow():
    n = RECENT_MAX + 10
    data = "sigma\n" + 2 * "".join(f"{1 + i / n!r}\n" for i in range(n))
    run = log(data)
    assert len(run.parts) == n and run.steps == 2 * n


@pytest.mark.parametrize("data", ["sigma,q,steps\n", "", "\n\n"])
def test_a_log_without_steps_is_the_empty_run_if_asked(data):
    assert log(data, allow_empty=True) == hs.compose()


SGD = hs.poisson_subsampled(hs.gaussian(1.0), 0.01) * 5 + hs.gaussian(2.0)


@pytest.mark.parametrize(
    "data",
    [
        "# made by train.py\nsigma;q;steps\n1.0;0.01;5\n# phase 2\n2.0;1;1\n",
        "Sigma\tQ\tsteps\tnote\r\n1.0\t0.01\t5\t\r\n2.0\t1\t1\ta;b,c\r\n",
        'loss;sigma;q;steps;note\n"1,5";1.0;0.01;5;"a;b"\n1,5;2.0;1;1;\n',
        'note,sigma,q,steps\n"# 1",1.0,0.01,5\n,2.0,1,1\n',
        "\ufeff\n  # JSON lines\n" + '{"sigma": 1.0, "q": 0.01, "steps": 5}\n\n# {"sigma": 3.0}\n{"sigma": 2.0}\n',
    ],
)
def test_separators_and_comments(data):
    assert log(data) == SGD


WHOLE = ["sigma,q,steps\n1.0,0.01,5\n1.0,0.01,1000\n", '{"sigma": 1.0, "q": 0.01}\r\n{"sigma": 2.0, "steps": 1000}\r\n']


@pytest.mark.parametrize("data", WHOLE)
def test_a_log_cut_anywhere_is_refused_or_whole_lines_of_it(data):
    run = log(data)
    for end in range(len(data)):
        try:
            part = log(data[:end])
        except hs.DomainError as error:
            assert re.match("log(:[123])?: ", str(error))
        else:
            assert data[end - 1] == "\n" and part.steps < run.steps


BAD_LOGS = [
    ("", "log: empty log"),
    ("\n\n", "log: empty log"),
    ("sigma,q,steps\n", "log: empty log, no step in 1 lines"),
    ("sigma,q,steps\n1.0,0.01,5\n1.0,0.01,1", "log:3: the last line has no line end"),
    ('{"sigma": 1.0}\n{"sigma": 1.0}', "log:2: the last line has no line end"),
    ("sigma,q,steps", "log:1: the last line has no line end"),
    ("sigma\n1\n ", "log:3: the last line has no line end"),
    ("1.0,0.1,5\n", 'log:1: .*no column "sigma".*first line that .* must name'),
    ("sigma q steps\n", 'log:1: .*no column "sigma"; .*separated by commas, semicolons or tabs'),
    ("# sigma,q\n1.0,0.1\n", "log:2: .*the first line that is no # comment must name"),
    ("sigma;q\n1,0;0,01\n", "log:2: sigma must be a number, with a decimal point, got '1,0'"),
    ("sigma,q;steps\n1,0.1;5\n", "log:1: column 'q;steps' holds more than one name"),
    ("sigma;loss;q,steps\n1;2;0.1,5\n", "log:1: column 'q,steps' holds more than one name"),
    ("tag,sigma\n#1,1.0\n2,1.0\n", "log:2: a comment or a row"),
    ("sigma;q\n1;0.1\n1,0.1\n", "log:3: expected 2 fields .sigma;q., got 1"),
    ("sigma\n1\n# end", "log:3: the last line has no line end"),
    ("# nothing\n", "log: empty log"),
    ("noise_multiplier,q\n", "log:1: .*--columns sigma=noise_multiplier"),
    ("sigma,sample_rate\n", "log:1: column 'sample_rate' looks like q: say --columns q=sample_rate"),
    ("sigma,q,count\n", "log:1: column 'count' looks like steps"),
    ("q,steps\n", 'log:1: .*no column "sigma"'),
    ("sigma,sigma\n", "log:1: column 'sigma' appears twice"),
    ("sigma,q\n1,0.1\n1\n", "log:3: expected 2 fields .* got 1"),
    ("sigma,q\n1,0.1\n\n1,0.1,7\n", "log:4: expected 2 fields .* got 3"),
    ("sigma,q\n1,\n", "log:2: q must be a number, got ''"),
    ("sigma,q\n1,x\n", "log:2: q must be a number, got 'x'"),
    ("sigma\n1_0\n", "log:2: sigma must be a number, got '1_0'"),
    ("sigma\n٣\n", "log:2: sigma must be a number"),
    ("sigma\nnan\n", "log:2: sigma .*nan"),
    ("sigma\n1e999\n", "log:2: sigma .*inf"),
    ("sigma\n1\n0\n", "log:3: sigma .*0.0"),
    ("sigma\n1\n-1\n", "log:3: sigma .*-1.0"),
    ("sigma,q\n1,0\n", "log:2: q .*0.0"),
    ("sigma,q\n1,1.5\n", "log:2: q .*1.5"),
    ("sigma,q\n1,nan\n", "log:2: q .*nan"),
    ("sigma,steps\n1,0\n", "log:2: steps .*got 0"),
    ("sigma,steps\n1,-3\n", "log:2: steps .*got -3"),
    ("sigma,steps\n1,2.5\n", "log:2: steps .*got 2.5"),
    ("sigma,steps\n1,inf\n", "log:2: steps .*got inf"),
    ("sigma,steps\n1,1e13\n", "log:2: steps .*got 10000000000000"),
    ("sigma,steps\n1,1e12\n2,1\n1,1\n", "log:4: total of Gaussian"),
    ("sigma,q\n1,0.1\nsigma,q\n", "log:3: sigma must be a number, got 'sigma'"),
    ('{"sigma": 1}\n1,2,3\n', "log:2: not one JSON object"),
    ('{"sigma": 1}\n{"sigma": 1\n', "log:2: not one JSON object"),
    ('{"sigma": 1} {"sigma": 1}\n', "log:1: not one JSON object"),
    ('[{"sigma": 1}]\n', "log:1: expected a JSON object"),
    ('{"sigma": 1}\n3\n', "log:2: expected a JSON object.*got 3"),
    ("{}\n", 'log:1: no key "sigma"'),
    ('{"sigma": 1, "rate": 0.1}\n', "log:1: column 'rate' looks like q"),
    ('{"sigma": 1, "sigma": 2}\n', "log:1: a key appears twice"),
    ('{"sigma": "1"}\n', "log:1: sigma .*'1'"),
    ('{"sigma": true}\n', "log:1: sigma .*True"),
    ('{"sigma": [1]}\n', "log:1: sigma .*"),
    ('{"sigma": NaN}\n', "log:1: sigma .*nan"),
    ('{"sigma": 1, "q": null}\n', "log:1: q .*None"),
    ('{"sigma": 1, "steps": true}\n', "log:1: steps .*True"),
    ('{"sigma": 1, "steps": "3"}\n', "log:1: steps .*'3'"),
    ('{"sigma": 1, "steps": 0.5}\n', "log:1: steps .*0.5"),
    ('{"sigma": 1' + 400 * "0" + "}\n", "log:1: sigma"),
    ('{"sigma": ' + 2000 * "[" + "\n", "log:1: not one JSON object"),
    ("sigma\n1" + LINE_MAX * "0" + "\n", f"log:2: line longer than {LINE_MAX}"),
    (b"sigma\n1\n\xff\xfe\n", "log:3: not UTF-8"),
    ("sigma\n1\n".encode("utf-16"), "log:1: not UTF-8"),
    (b"\0" * 10_000, "log:1: line longer"),
]


@pytest.mark.parametrize(("data", "message"), BAD_LOGS)
def test_a_malformed_line_is_refused_with_its_number(data, message):
    with pytest.raises(hs.DomainError, match=f"^{message}"):
        log(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_run_or_a_named_error(data):
    try:
        assert isinstance(log(data), hs.Run)
    except hs.DomainError as error:
        assert str(error).startswith("log:")


# The command


def test_epsilon_answers_what_the_library_answers(capsys):
    status, out, err = call(
        capsys, "epsilon", "--sigma", 1.0, "--q", 0.01, "--steps", 1000, "--delta", "1e-5", "1e-6", "--format", "json"
    )
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert list(result)[:3] == ["format", "version", "package"]
    assert (result["format"], result["version"], result["query"]) == ("hockeystick.result", 2, "epsilon")
    assert result["runs"] == [{"name": "sigma=1 q=0.01 steps=1000", "steps": 1000, "distinct_steps": 1}]
    assert [row["delta"] for row in result["rows"]] == [1e-5, 1e-6]
    for row in result["rows"]:
        bound = query.epsilon(step(1.0, 0.01) * 1000, row["delta"])
        assert (row["lower"], row["estimate"], row["upper"]) == (bound.lower, bound.estimate, bound.upper)
        assert (row["route"], row["certified"]) == (bound.route, bound.certified)
        assert row["budget"] == {"unit": bound.budget.unit, "terms": dict(bound.budget.terms)}


def test_delta_answers_what_the_library_answers(capsys):
    argv = ("delta", "--sigma", 2, "--steps", "1e1", "--eps", "1", "--direction", "remove", "--format", "json")
    status, out, _ = call(capsys, *argv)
    bound = query.delta(hs.gaussian(2.0) * 10, 1.0, direction="remove")
    (row,) = json.loads(out)["rows"]
    assert status == 0 and json.loads(out)["direction"] == "remove"
    assert (row["eps"], row["lower"], row["upper"]) == (1.0, bound.lower, bound.upper)


def test_text_shows_the_interval_route_and_budget(capsys):
    status, out, _ = call(capsys, "epsilon", "--sigma", 1, "--q", 0.01, "--steps", 300, "--delta", 1e-5, 1e-7)
    assert status == 0
    bound = query.epsilon(step(1.0, 0.01) * 300, 1e-5)
    title, head, first, second, note = out.splitlines()
    assert "not checked" in note
    assert "300 steps" in title and "add_remove" in title
    assert head.split() == ["delta", "lower", "estimate", "upper", "route", "certified", "budget"]
    cells = first.split()
    assert [float(c) for c in cells[:4]] == [1e-5, bound.lower, bound.estimate, bound.upper]
    assert cells[4:6] == [bound.route, "yes"]
    assert all(f"{name}=" in first for name in bound.budget.terms) and bound.budget.unit in first
    assert float(second.split()[0]) == 1e-7


@pytest.mark.parametrize("asked", [("--delta", "1e-5"), ("--eps", "0.5", "2")])
def test_run_reads_a_file_and_standard_input(capsys, asked):
    verb = "epsilon" if asked[0] == "--delta" else "delta"
    status, out, _ = call(capsys, verb, *asked, DIGITS, "--format", "json")  # runs may come after the values
    assert status == 0
    piped = process(verb, "digits=-", *asked, "--format", "json", data=DIGITS.read_bytes())
    assert (piped.returncode, piped.stderr) == (0, b"")
    named = json.loads(out.replace(json.dumps(str(DIGITS)), '"digits"'))
    assert json.loads(piped.stdout) == named


def test_options_reach_the_query(capsys, monkeypatch):
    seen = {}

    def ask(run, value, **options):
        seen.update(options)
        return Bound(-math.inf, 1.0, math.inf, "test", False, Budget({"slack": math.inf}, "delta"))

    monkeypatch.setattr(query, "epsilon", ask)
    options = "--adjacency zero_out --direction add --route prv --rtol 1e-6 --threads 2".split()
    given = ("epsilon", "--sigma", 1, "--steps", 1, "--delta", 0.1, *options)
    status, out, _ = call(capsys, *given, "--format", "json")
    assert status == 0
    assert seen == dict(adjacency="zero_out", direction="add", route="prv", rtol=1e-6, n_threads=2)
    (row,) = json.loads(out)["rows"]
    assert (row["lower"], row["upper"], row["certified"]) == ("-inf", "inf", False)
    assert row["budget"] == {"unit": "delta", "terms": {"slack": "inf"}}
    assert " no " in call(capsys, *given)[1]


def test_what_cannot_be_certified_has_its_own_status(capsys, monkeypatch):
    def ask(run, value, **options):
        raise hs.AccuracyError("reached 1e-3")

    monkeypatch.setattr(query, "delta", ask)
    answer = call(capsys, "delta", "--sigma", 1, "--steps", 1, "--eps", 1)
    assert answer == (1, "", "hockeystick: error: reached 1e-3\n")


EPSILON = ["epsilon", "--sigma", "1", "--q", "0.01", "--steps", "10", "--delta", "1e-5"]


def edited(flag, *values):
    argv = list(EPSILON)
    if flag in argv:
        argv[argv.index(flag) + 1] = values[0]
        return argv
    return [*argv, flag, *values]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "required"),
        (["epsilon"], "--delta"),
        (["epsilon", "--delta", "1e-5"], "--sigma"),
        (["epsilom"], "invalid choice.*did you mean epsilon"),
        (["epsilon", "LOG"], "--delta"),
        (["epsilon", str(DIGITS), "--sigma", "1", "--delta", "1e-5"], "not both"),
        (["epsilon", str(DIGITS), "--delta", "1e-5", "--eps", "1"], "unrecognized"),
        (["epsilon", str(DIGITS), "--delta", "x.csv"], "--delta: expected a number"),
        (["epsilon", str(DIGITS), "--delta", "1:2:3:4"], "expected a number, a list A,B,... or a range"),
        (["epsilon", str(DIGITS), "--delta", "1e-5:1e-7:3"], "--delta needs 0 < LO < HI"),
        (["epsilon", str(DIGITS), "--format", "xml", "--delta", "1e-5"], "--format"),
        (edited("--eps", "1"), "unrecognized"),
        (edited("--sigma", "abc"), "--sigma: expected a number, got 'abc'"),
        (edited("--sigma", "0"), "sigma .*0.0"),
        (edited("--sigma", "-1"), "sigma .*-1.0"),
        (edited("--sigma", "nan"), "sigma .*nan"),
        (edited("--sigma", "inf"), "sigma .*inf"),
        (edited("--q", "0"), "q .*0.0"),
        (edited("--q", "1.1"), "q .*1.1"),
        (edited("--q", "nan"), "q .*nan"),
        (edited("--steps", "0"), "got 0"),
        (edited("--steps", "-3"), "got -3"),
        (edited("--steps", "1.5"), "expected a whole number, got '1.5'"),
        (edited("--steps", "inf"), "expected a whole number, got 'inf'"),
        (edited("--steps", "nan"), "expected a whole number, got 'nan'"),
        (edited("--steps", "1e13"), "got 10000000000000"),
        (edited("--delta", "0"), "delta"),
        (edited("--delta", "1"), "delta"),
        (edited("--delta", "-1"), "delta"),
        (edited("--delta", "nan"), "delta"),
        (edited("--adjacency", "neighbour"), "neighbour"),
        (edited("--direction", "up"), "up"),
        (edited("--route", "scenic"), "scenic"),
        (["delta", "--sigma", "1", "--steps", "1", "--eps", "nan"], "eps"),
        (["delta", "/nonexistent/log.csv", "--eps", "1"], "/nonexistent/log.csv: No such file"),
        (["delta", str(DIGITS.parent), "--eps", "1"], "Is a directory"),
    ],
)
def test_bad_input_is_status_2_with_a_message(capsys, argv, message):
    status, out, err = call(capsys, *argv)
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    assert "Traceback" not in err


def test_a_malformed_log_names_file_and_line(capsys, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("sigma,q,steps\n1,0.1,10\n1,0.1,ten\n")
    answer = call(capsys, "epsilon", path, "--delta", "1e-5")
    assert answer == (2, "", f"hockeystick: error: {path}:3: steps must be a number, got 'ten'\n")


def test_a_log_cut_short_is_answered_only_if_asked(capsys, tmp_path):
    cut, empty = tmp_path / "cut.csv", tmp_path / "empty.csv"
    cut.write_text("sigma,q,steps\n1.0,0.01,5\n1.0,0.01,1")
    empty.write_text("sigma,q,steps\n")
    for command in (["epsilon", cut, "--delta", 1e-5], ["curve", cut, "--points", 3], ["tradeoff", cut, "--points", 3]):
        status, out, err = call(capsys, *command)
        assert (status, out) == (2, "") and f"{cut}:3: the last line has no line end" in err
        assert call(capsys, *command, "--allow-unterminated")[0] == 0
    for command in (["epsilon", empty, "--delta", 1e-5], ["curve", empty, "--eps", "0:1:3"]):
        status, out, err = call(capsys, *command)
        assert (status, out) == (2, "") and f"{empty}: empty log" in err
        assert call(capsys, *command, "--allow-empty")[0] == 0


def test_negative_eps(capsys):
    for eps in (("--eps=-1e-3",), ("--eps", "-2"), ("--epsilon", "-2,-1", "-.5")):
        status, out, _ = call(capsys, "delta", "--sigma", 1, "--steps", 1, *eps, "--format", "json")
        assert status == 0 and 0 < json.loads(out)["rows"][0]["lower"] < 1


def test_as_a_process():
    version = process("--version")
    assert (version.returncode, version.stdout.strip()) == (0, f"hockeystick {hs.__version__}".encode())
    helped = process("epsilon", "--help")
    assert helped.returncode == 0 and b"exit status" in helped.stdout
    bad = process("epsilon", "-", "--delta", "1e-5", data=b"sigma\nx\n")
    assert (bad.returncode, bad.stdout) == (2, b"")
    assert bad.stderr.strip() == b"hockeystick: error: <stdin>:2: sigma must be a number, got 'x'"


def test_a_reader_that_leaves_is_no_error():
    command = [sys.executable, "-m", "hockeystick", *EPSILON]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.wait(60) == 0
    assert child.stderr.read() == b""
    child.stderr.close()


def test_the_digits_log_is_heterogeneous_and_certified():
    with DIGITS.open("rb") as stream:
        run = read_log(stream, "digits")
    assert run.steps == 350 and len(run.parts) == 42
    bound = query.epsilon(run, 1e-5)
    assert bound.certified and 0 < bound.lower <= bound.estimate <= bound.upper
