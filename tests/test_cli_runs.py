"""The one grammar of RUN in every verb, what logs say against themselves, old spellings."""

import csv
import inspect
import io
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import cli
from hockeystick.cli import expression, options
from test_cli import call, log

G, P = hs.gaussian, hs.poisson_subsampled
SGD = P(G(1.0), 0.01)


@pytest.mark.parametrize(
    "text, run",
    [
        ("1000*gaussian(1.0)@0.01 + 5*laplace(2)", SGD * 1000 + hs.laplace(2.0) * 5),
        ("1000*(gaussian(1)@0.01)", SGD * 1000),
        ("gaussian(1)@.01*1e3", SGD * 1000),
        ("2*(laplace(2) + 3*gaussian(4, sensitivity=2))", hs.laplace(2.0) * 2 + G(4.0, sensitivity=2.0) * 6),
        (
            "500*truncated(1.0, q=0.01, n=10000, max=150)",
            hs.truncated_poisson_subsampled(G(1.0), 0.01, dataset_size=10000, max_batch=150) * 500,
        ),
        (
            "truncated(2, .1, n=(100, 1e3), max=20)",
            hs.truncated_poisson_subsampled(G(2), 0.1, dataset_size=(100, 1000), max_batch=20),
        ),
        ("without_replacement(2.0, n=1e4, batch=100)", hs.without_replacement(G(2.0), dataset_size=10000, batch=100)),
        (
            "cyclic(4.0, q=0.5, iterations=40, bands=2, n=199)",
            hs.cyclic_poisson(G(4.0), 0.5, iterations=40, bands=2, dataset_size=199),
        ),
        ("gaussian_mixture(1, [0, 1], [0.9, 0.1])", hs.gaussian_mixture(1, [0, 1], [0.9, 0.1])),
        ("public_mixture([gaussian(1), laplace(1)], [.5, .5])", hs.public_mixture([G(1), hs.laplace(1)], [0.5, 0.5])),
        ("3*from_pmf([.6, .4], [.4, .6])@0.5", P(hs.from_pmf([0.6, 0.4], [0.4, 0.6]), 0.5) * 3),
        ("from_curve([-0.5], [0.5], symmetric=False)", hs.from_curve([-0.5], [0.5], symmetric=False)),
        ("k_ary_randomized_response(1.0, 4)", hs.k_ary_randomized_response(1.0, 4)),
        ("9*bounded_range(0.1)@0.5", P(hs.bounded_range(0.1), 0.5) * 9),
        (
            "exponential_mechanism(0.1) + permute_and_flip(0.2)",
            hs.exponential_mechanism(0.1) + hs.permute_and_flip(0.2),
        ),
        ("top_k(0.1, 1e1)", hs.top_k(0.1, 10)),
        ("balls_and_bins(2.0, 10, epochs=2)", hs.balls_and_bins(G(2.0), 10, epochs=2)),
        ("10*allocation(1.0, steps=100)", hs.random_allocation(G(1.0), 100) * 10),
        ("1000*poisson_subsampled(gaussian(1.0), 0.01)", SGD * 1000),  # as in Python
        ("poisson_subsampled(mechanism=gaussian(1.0), q=0.01) * 1000", SGD * 1000),
        (
            "truncated_poisson_subsampled(gaussian(1.0), 0.01, dataset_size=10000, max_batch=150)",
            hs.truncated_poisson_subsampled(G(1.0), 0.01, dataset_size=10000, max_batch=150),
        ),
    ],
)
def test_expressions(text, run):
    assert expression.parse(text) == hs.compose(run)


def test_every_step_that_python_makes_of_numbers_can_be_written():
    """Public functions that say that they return a step, but for those that take a function or a name."""
    makes = {name for name in hs.__all__ if _makes_a_step(getattr(hs, name))}
    assert {"gaussian", "top_k", "cyclic_poisson"} <= makes and not makes - set(expression.STEPS) - {
        "from_loss_cdf",
        "register",
    }
    listed = expression.mechanisms()
    assert all(f"{name}(" in listed for name in expression.STEPS if name not in expression.LONG)


def _makes_a_step(thing):
    if not inspect.isfunction(thing):
        return False
    made = getattr(sys.modules[thing.__module__], str(inspect.signature(thing).return_annotation), None)
    return inspect.isclass(made) and issubclass(made, hs.Mechanism)


@pytest.mark.parametrize(
    "text, message",
    [
        ("gaussian(1", "not an expression"),
        ("from_pmf([1/3, 2/3], [.5, .5])", "expected a number"),
        ("gaussian(1)(2)", "unknown mechanism"),
        ("gauss(1)", "unknown mechanism; allowed: gaussian, laplace"),
        ("gaussian()", r"missing a required argument: 'sigma'; gaussian\(sigma, sensitivity=1.0\)"),
        ("gaussian(1, noise=2)", "unexpected keyword argument 'noise'"),
        ("gaussian(0)", "sigma must be"),
        ("gaussian('1')", "expected a number"),
        ("gaussian(True)", "sigma must be a real number"),
        ("gaussian(1)@2", "q .sampling rate. must be"),
        ("gaussian(1)@0.1@0.1", "sampled once"),
        # two steps on one sample are no composition of sampled ones
        ("(2*gaussian(1))@0.1", "@RATE belongs to one step"),
        ("(\n2*gaussian(1)\n)@0.1", "@RATE belongs to one step"),
        ("gaussian(1)*2@0.1", "@RATE belongs to one step"),
        ("(gaussian(1) + laplace(1))@0.1", "@RATE belongs to one step"),
        ("1.5*gaussian(1)", "a count must be an integer"),
        ("0*gaussian(1)", "a count must be an integer"),
        ("gaussian(1) - laplace(1)", "expected COUNT"),
        ("gaussian(1) + 2", "expected COUNT"),
        ("gaussian(**{})", "not allowed"),
        ("gaussian(?)", "calibrate"),
        ("__import__('os').system('x')", "unknown mechanism"),
        ("gaussian(1 if 1 else 2)", "expected a number"),
        ("gaussian(" + "-" * 5000 + "1)", "not an expression|recursion"),
        ("gaussian(1)" + "+gaussian(1)" * 20000, "characters"),
    ],
)
def test_what_is_no_expression_is_refused_by_name(text, message):
    with pytest.raises(hs.DomainError, match=message):
        expression.parse(text)


def upper(capsys, *argv):
    status, out, err = call(capsys, *argv, "--format", "json")
    assert (status, err) == (0, "")
    return [row["upper"] for row in json.loads(out)["rows"]]


def test_every_form_of_a_run_in_every_verb(capsys, tmp_path):
    run, forms = SGD * 300, {}
    accountant = hs.Accountant()
    accountant.step(run)
    for name, text in {
        "log.csv": "sigma,q,steps\n1,0.01,300\n",
        "log.jsonl": '{"sigma": 1, "q": 0.01, "steps": 100}\n{"sigma": 1, "q": 0.01, "steps": 200}\n',
        "run.json": hs.to_json(run, indent=2),
        "accountant.json": json.dumps(accountant.state_dict()),
    }.items():
        (tmp_path / name).write_text(text)
        forms[name] = [str(tmp_path / name)]
    forms |= {
        "expression": ["300*gaussian(1)@0.01"],
        "triple": ["1:0.01:300"],
        "flags": "--sigma 1 --q 0.01 --steps 300".split(),
    }
    verbs = {
        "epsilon --delta 1e-5": [hs.epsilon(run, 1e-5).upper],
        "delta --eps 1": [hs.delta(run, 1.0).upper],
        "curve --eps 0.5,1": hs.delta(run, [0.5, 1.0]).upper.tolist(),
        "tradeoff --fpr 0.1": [hs.tradeoff(run, 0.1).upper],
        "along --delta 1e-5 --at 100,300": [hs.epsilon(SGD * k, 1e-5).upper for k in (100, 300)],
        "explain --delta 1e-5": [hs.epsilon(run, 1e-5).upper],
        "check": None,
        "risk": None,
    }
    for verb, expected in verbs.items():
        answers = [upper(capsys, *verb.split(), *form) for form in forms.values()]
        assert all(answer == (expected or answers[0]) for answer in answers), verb


def test_states_that_are_no_run_are_refused(capsys, tmp_path):
    path = tmp_path / "state.json"
    for text, message in (
        (hs.to_json(hs.epsilon(SGD, 1e-5)), "a bound says what a run cost"),
        ('{"format": "other"}', "unknown format 'other'"),
        (hs.to_json(SGD * 2) + "\n{}", "one state per file"),
        ('{"sigma": 1}\n{"sigma"', "not one JSON object"),
        ("SQLite format 3\0\n", "a database, not a log"),
    ):
        path.write_text(text)
        status, out, err = call(capsys, "epsilon", path, "--delta", 1e-5, "--allow-unterminated")
        assert (status, out) == (2, "") and re.search(f"{re.escape(str(path))}.*{message}", err), err


def test_labels(capsys):
    _, out, _ = call(capsys, "epsilon", "a=1:0.1:10", "1:0.1:10", "1:0.1:10", "--delta", 1e-5, "--format", "csv")
    names = [row["run"] for row in csv.DictReader(io.StringIO(out))]
    assert names == ["a", "sigma=1 q=0.1 steps=10", "sigma=1 q=0.1 steps=10 #2"]


@pytest.mark.parametrize(
    "argv, low, high",
    [
        (["1000*gaussian(?)@0.01", "--eps", 1, "--delta", 1e-5], 1.41461, 1.41463),
        (["?:0.01:1000", "--epsilon", 1, "--delta", 1e-5], 1.41461, 1.41463),
        (["--q", 0.01, "--steps", 1000, "--solve", "sigma", "--eps", 1, "--delta", 1e-5], 1.41461, 1.41463),
        (["--sigma", 1, "--q", 0.01, "--eps", 1, "--delta", 1e-5], 254, 254),
        (["?*gaussian(1)@0.01", "--eps", 1, "--delta", 1e-5], 254, 254),
        (["10*laplace(?)", "--advantage", 0.3, "--over", "1:100", "--tol", 1e-3], 3.9, 4),
        (["5*gaussian(3)@0.01", "--solve", "steps", "--eps", 1, "--delta", 1e-5], 6022, 6022),
        (["1000*gaussian(2, sensitivity=2)@0.01", "--solve", "sigma", "--eps", 1, "--delta", 1e-5], 1.41461, 1.41463),
        (["1:0.5:1000", "--solve", "q", "--eps", 2, "--delta", 1e-5], 0.010862, 0.010864),
        (["9*laplace(2)", "--solve", "steps", "--eps", 2, "--delta", 1e-5], 4, 4),
        (["10*gaussian(20)@?", "--eps", 0.1, "--delta", 1e-5, "--tol", 1e-3], 0.1, 1),
    ],
)
def test_calibrate(capsys, argv, low, high):
    status, out, _ = call(capsys, "calibrate", *argv, "--format", "json")
    (row,) = json.loads(out)["rows"]
    assert status == 0 and low <= row["value"] <= high and row["certified"]


@pytest.mark.parametrize(
    "argv, message",
    [
        (["gaussian(1)", "--eps", 1, "--delta", 1e-5], "needs one [?]"),
        (["gaussian(?) + laplace(?)", "--eps", 1, "--delta", 1e-5], "needs one [?]"),
        (["truncated(1, q=.1, n=?, max=10)", "--eps", 1, "--delta", 1e-5], "may stand for a count, a rate"),
        (["gaussian(?)", "--solve", "q", "--eps", 1, "--delta", 1e-5], "the [?] stands for sigma"),
        (["9*laplace(2)", "--solve", "sigma", "--eps", 1, "--delta", 1e-5], "needs steps of gaussian"),
        (["laplace(2)+gaussian(1)", "--solve", "steps", "--eps", 1, "--delta", 1e-5], "equal steps.* 2 distinct"),
        (["--sigma", 1, "--eps", 1, "--delta", 1e-5], "--solve sigma, q or steps"),
        (["--sigma", 1, "--steps", 5, "--solve", "sigma", "--eps", 1, "--delta", 1e-5], "to be solved for"),
        (["gaussian(?)", "--eps", 1], "the target must be"),
        (["gaussian(?)", "--eps", 1, "--delta", 1e-5, "--over", "1"], "LO:HI"),
        (["gaussian(?)", "--eps", 1, "--delta", 1e-5, "--rtol", 0.1], "--tol"),
    ],
)
def test_bad_calibrations(capsys, argv, message):
    status, out, err = call(capsys, "calibrate", *argv)
    assert (status, out) == (2, "") and re.search(message, err), err


def test_along_a_log_keeps_its_order(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("sigma,q,steps\n1,0.01,10\n2,0.01,10\n1,0.01,10\n")
    a, b = SGD, P(G(2.0), 0.01)
    expected = [hs.epsilon(run, 1e-5).upper for run in (a * 10, a * 10 + b * 5, a * 15 + b * 10)]
    assert upper(capsys, "along", path, "--delta", 1e-5, "--at", "10,15,25") == expected


def test_explain():
    run = SGD * 1000 + G(20.0) * 10
    found = hs.explain(run, eps=2.0)
    assert (found.bound.lower, found.query, found.at) == (hs.delta(run, 2.0).lower, "delta", 2.0)
    assert (
        found.contour == "line"
        and found.nodes > 8
        and found.tilt == pytest.approx(hs.saddlepoint_delta(run, 2.0, direction="remove").tilt)
    )
    assert sum(each.share for each in found.steps) == pytest.approx(1)
    for each in found.tried:
        assert each.lower is None or each.lower <= found.bound.upper
    json.dumps(found.to_dict())
    refused = hs.explain(hs.laplace(1.0) * 3, delta=0.2)
    assert any(each.lower is None for each in refused.tried) and "declined" in str(refused)
    many = hs.explain(sum((hs.pure_dp(0.01 + i / 1e4) for i in range(200)), hs.gaussian(9.0) * 1), delta=1e-5)
    assert "declined: a line takes 20000 distinct steps, 128 of them by tables" in str(many)
    with pytest.raises(hs.DomainError, match="either eps or delta"):
        hs.explain(run)


# Logs that say more


FULL = "step,epoch,noise_multiplier,batch_size,dataset_size,sampler,accumulation,adjacency,loss\n"


def test_a_log_of_a_training_loop():
    lines = [f'{i},0,1.1,150,60000,Poisson,4,add-remove,"2,{i}"\n' for i in range(5)]
    columns = {"sigma": "noise_multiplier"}
    run = log(FULL + "".join(lines), columns=columns)
    assert run.steps == 5 and run.parts[0][0].base == G(1.1) and run.parts[0][0].q == pytest.approx(0.01, abs=1e-16)
    assert run.parts[0][0].q * 60000 >= 600  # rounded up
    objects = [
        json.dumps(
            dict(zip(FULL.strip().split(","), [i, 0, 1.1, 150, 60000, "poisson", 4, "add_remove", {}], strict=True))
        )
        for i in range(5)
    ]
    assert log("\n".join(objects) + "\n", columns=columns) == run
    with pytest.raises(hs.DomainError, match=r"log:4: step goes from 1 to 3.*steps are missing"):
        log(FULL + "".join(lines[:2] + lines[3:]), columns=columns)
    assert log(FULL + "".join(lines[3:]), columns=columns | {"step": ""}).steps == 2


@pytest.mark.parametrize(
    "data, run",
    [
        ("step,sigma,steps\n100,1,100\n200,1,100\n", G(1.0) * 200),
        ("step,sigma,steps\n1,1,100\n101,1,100\n", G(1.0) * 200),
        ("sigma,q,batch_size,dataset_size\n1,0.0042553,256,60000\n", P(G(1.0), 0.0042553)),  # a rounded expected size
        (
            "sigma,q,sampler,dataset_size,max_batch\n1,0.01,truncated_poisson,10000,150\n",
            hs.truncated_poisson_subsampled(G(1.0), 0.01, dataset_size=10000, max_batch=150),
        ),
        (
            "sigma,sampler,dataset_size,batch_size\n1,fixed size,10000,100\n",
            hs.without_replacement(G(1.0), dataset_size=10000, batch=100),
        ),
        ("sigma,sampler\n1,full_batch\n1,poisson\n", G(1.0) * 2),
        ("sigma,q,sample_rate\n1,0.5,7\n", P(G(1.0), 0.5)),
        ("sigma,q,sampler,divisor,membership\n1,0.5,poisson,Constant,secret\n1,0.5,,,\n", P(G(1.0), 0.5) * 2),
        ("sigma,sampler,membership\n1,none,published\n", G(1.0)),
    ],
)
def test_columns(data, run):
    assert log(data) == hs.compose(run)


@pytest.mark.parametrize(
    "data, message",
    [
        (
            "sigma,q,batch_size,dataset_size\n1,0.02,600,60000\n",
            r"log:2: q=0.02 is not batch_size/dataset_size=600/60000=0.01",
        ),
        (
            "sigma,q,batch_size,dataset_size,accumulation\n1,0.01,600,60000,4\n",
            "but 4 are accumulated in a step: q must be about 0.04",
        ),
        ("sigma,q,accumulation\n1,0.01,4\n", "accumulation=4 without batch_size"),
        ("sigma,q,sampler\n1,0.01,shuffled\n", "sampler 'shuffled' has no certified account.*no Poisson samples"),
        ("sigma,q,sampler\n1,0.01,best\n", "sampler 'best'.*unknown; allowed: poisson"),
        ("sigma,q,sampler\n1,0.01,balls-in-bins\n", "bin that is kept for all epochs.*hs.balls_and_bins"),
        ("sigma,q,divisor\n1,0.01,batch size\n", "divisor 'batch size'.*public constant .C2.*allowed: constant"),
        ("sigma,q,sampler,divisor\n1,0.01,allocation,realised\n", "divisor 'realised'.*C2"),
        ("sigma,q,sampler,membership\n1,0.01,allocation,published\n", "membership 'published'.*secret .C4"),
        ("sigma,q,normalizer\n1,0.01,batch\n", "divisor"),
        ("sigma,q,sampler\n1,0.01,none\n", "uses every record, but q=0.01"),
        ("sigma,sampler,batch_size\n1,without_replacement,5\n", "needs a column dataset_size"),
        (
            "sigma,adjacency\n1,replace-one\n",
            "log says adjacency 'replace-one', asked is 'add_remove': ask with adjacency 'replace_one'",
        ),
        ("sigma,adjacency\n1,other\n", "allowed are add_remove"),
        ("sigma,step\n1,1000\n", "the log starts at step 1000"),
        ("sigma,step\n1,100\n1,200\n", "the log starts at step 100"),
        ("sigma,batch_size,dataset_size\n1,20,10\n", "batch_size must be > 0 and with accumulation at most"),
        ('{"sigma": 1, "sampler": 3}\n', "sampler must be text"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused_by_name(data, message):
    with pytest.raises(hs.DomainError, match=message):
        log(data)


def test_columns_by_name(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("noise_multiplier,sample_rate,loss\n1,0.01,2.3\n")
    status, _, err = call(capsys, "epsilon", path, "--delta", 1e-5)
    assert status == 2 and "--columns sigma=noise_multiplier" in err
    flags = ("--columns", "sigma=noise_multiplier,q=sample_rate")
    assert upper(capsys, "epsilon", path, "--delta", 1e-5, *flags) == [hs.epsilon(SGD, 1e-5).upper]
    assert upper(capsys, "check", path, *flags)[:2] == [1, 1]
    for bad, message in (
        ("sigma", "NAME=COLUMN"),
        ("noise=x", "columns must map"),
        ("sigma=other", "has no column 'other'"),
    ):
        status, _, err = call(capsys, "epsilon", path, "--delta", 1e-5, "--columns", bad)
        assert status == 2 and message in err
    assert hs.read_log(path, columns={"sigma": "noise_multiplier", "q": "sample_rate"}) == hs.compose(SGD)


def test_check_warns(capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("sigma,q,lr\n0.01,1e-7,3\n")
    status, out, _ = call(capsys, "check", path)
    for word in (
        "columns passed over: lr",
        "no column sampler",
        "sigma as small as",
        "q as small as",
        "what is not certified",
    ):
        assert word in out
    assert status == 0


@pytest.mark.parametrize("line", [line for lines in cli.EXAMPLES.values() for line in lines])
def test_examples_of_the_help_work(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    for name in ("train_log.csv", "a.csv", "b.csv"):
        (tmp_path / name).write_text("sigma,q,steps\n1.0,0.01,500\n1.2,0.01,500\n")
    (tmp_path / "other_log.csv").write_text("noise_multiplier,sample_rate\n1.0,0.01\n")
    (tmp_path / "questions.csv").write_text("sigma,q,steps,delta\n1.0,0.01,1000,1e-5\n")
    np.save(tmp_path / "norms.npy", np.linspace(0, 0.5, 10).reshape(5, 2))
    if "spent.db left" in line:
        call(capsys, *shlex.split(cli.EXAMPLES["ledger"][0]))
    verb, *rest = shlex.split(line)
    if verb == "explore":
        cli.parser(verb).parse_intermixed_args(rest)
        return
    for extra, module in (("--plot", "matplotlib"), ("verify", "flint")):
        if extra in (verb, *rest):
            pytest.importorskip(module)
    status, out, err = call(capsys, verb, *rest)
    assert (status, err) == (0, "") and out


def test_the_help_explains_every_column_and_fits_a_terminal(capsys):
    for verb in cli.VERBS:
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 120
        if "runs" in cli.VERBS[verb].shares:
            for word in ("lower, upper", "estimate", "route", "certified", "budget", "examples:", "noise multiplier"):
                assert word in text, (verb, word)


# Old spellings


@pytest.mark.parametrize(
    "old, new",
    [
        ("run LOG --delta 1e-5 --json", "run LOG --delta 1e-5 --format json"),
        ("run LOG --eps 1", None),
        ("steps 1:0.1:10 --delta 1e-5", "along 1:0.1:10 --delta 1e-5"),
        ("curve LOG --eps 0 2 --points 5", "curve LOG --eps=0:2 --points 5"),
        ("tradeoff LOG --fpr 0.1 0.5", "tradeoff LOG --fpr=0.1:0.5"),
        ("individual F --sigma 1", "individual F --noise 1"),
        ("individual F --sigma=1 --json", "individual F --noise=1 --format json"),
        ("epsilon --sigma 1 --steps 1 --delta 1e-5 1e-6", None),
    ],
)
def test_old_spellings_keep_working_with_a_warning(old, new):
    found, warnings = options.modern(old.split())
    assert found == (new or old).split() and bool(warnings) == (new is not None)


def test_an_old_spelling_warns(capsys):
    status, out, err = call(capsys, "run", "--sigma", 1, "--steps", 1, "--delta", 1e-5, "--json")
    assert status == 0 and json.loads(out)["query"] == "epsilon" and "old spelling" in err


def test_run_asks_what_is_not_given(capsys):
    run = ("--sigma", 1, "--steps", 1)
    for given, verb in (("--delta", "epsilon"), ("--eps", "delta")):
        found = call(capsys, "run", *run, given, 0.5)
        assert found == call(capsys, verb, *run, given, 0.5) and found[::2] == (0, "")
    assert call(capsys, "run", *run)[0] == call(capsys, "run", *run, "--eps", 1, "--delta", 0.5)[0] == 2


# Help and completion


def test_help_of_every_verb_names_the_common_options(capsys):
    for name, verb in cli.VERBS.items():
        status, out, _ = call(capsys, name, "--help")
        assert status == 0 and f"hockeystick {name}" in out and "exit status" in out
        if {"query", "kept"} & set(verb.shares):
            for option in (
                "--adjacency",
                "--direction",
                "--route",
                "--rtol",
                "--threads",
                "--format",
                "--plot",
                "--quiet",
            ):
                assert option in out, (name, option)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(capsys, shell):
    status, out, _ = call(capsys, "completion", shell)
    assert status == 0 and all(name in out for name in cli.VERBS) and "zero_out" in out


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_completion_runs_in_bash(capsys):
    script = call(capsys, "completion", "bash")[1]
    script += '\nCOMP_WORDS=(hockeystick cali); COMP_CWORD=1; _hockeystick; echo "${COMPREPLY[@]}"'
    script += '\nCOMP_WORDS=(hockeystick risk --pri); COMP_CWORD=2; _hockeystick; echo "${COMPREPLY[@]}"'
    script += '\nCOMP_WORDS=(hockeystick ledger FILE s); COMP_CWORD=3; _hockeystick; echo "${COMPREPLY[@]}"'
    try:
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        pytest.skip("no bash")
    assert done.stdout.split() == ["calibrate", "--prior", "show", "step"], done.stderr


# Ledgers


def test_a_ledger_on_the_command_line(capsys, tmp_path):
    path = tmp_path / "train.ledger"
    for action in ("show", "left", "step"):
        status, out, err = call(capsys, "ledger", path, action, *([] if action == "show" else ["gaussian(1)"]))
        assert status == 2 and "does not exist" in err and not out
    limit = ("--eps", 1, "--delta", 1e-5)
    status, out, _ = call(capsys, "ledger", path, "step", "200*gaussian(1.0)@0.01", "laplace(500)", "--new", *limit)
    assert status == 0 and "201 steps; limit eps=1.0 at delta=1e-05, add_remove" in out
    status, out, err = call(capsys, "ledger", path, "step", "100*gaussian(1.0)@0.01")
    assert status == 1 and not out and "Nothing was recorded" in err
    assert call(capsys, "ledger", path, "step", "--sigma", 1, "--q", 0.01, "--steps", 3)[0] == 0
    with hs.Accountant(path) as accountant:
        assert accountant.limit == (1.0, 1e-5) and accountant.steps == 204
        run, left = accountant.run, accountant.steps_left(hs.poisson_subsampled(hs.gaussian(1.0), 0.01))
    status, out, _ = call(capsys, "ledger", path, "left", "sgd=gaussian(1.0)@0.01", "gaussian(1.0)", "--format", "json")
    rows = json.loads(out)["rows"]
    assert status == 0 and [(row["run"], row["left"]) for row in rows] == [("sgd", left), ("gaussian(1.0)", 0)]
    assert rows[0]["upper"] <= 1e-5
    said = json.loads(call(capsys, "ledger", path, "show", "--format", "json")[1])
    assert said["limit"] == {"eps": 1.0, "delta": 1e-5} and said["rows"][0]["lower"] == 204
    assert hs.from_dict({"format": "hockeystick.run", "version": 1, "parts": said["parts"]}) == run
    assert said["rows"][2]["upper"] == hs.epsilon(run, 1e-5).upper
    several = json.loads(call(capsys, "ledger", path, "show", "--delta", "1e-6,1e-7", "--format", "json")[1])["rows"]
    assert [row["delta"] for row in several[2:]] == [1e-6, 1e-7]
    assert "203 x PoissonSubsampled" in call(capsys, "ledger", path, "show")[1]
    assert call(capsys, "ledger", path)[1] == call(capsys, "ledger", path, "show")[1]
    assert "203 x" not in call(capsys, "ledger", path, "show", "--quiet")[1]


def test_a_log_goes_into_a_ledger(capsys, tmp_path):
    """It is read under the ledger's own adjacency."""
    path, log, other = tmp_path / "train.ledger", tmp_path / "log.csv", tmp_path / "other.csv"
    log.write_text("sigma,q,steps,adjacency\n1.0,0.01,10,zero_out\n")
    other.write_text("sigma,q,steps,adjacency\n1.0,0.01,10,add_remove\n")
    limit = ("--new", "--eps", 1, "--delta", 1e-5)
    assert call(capsys, "ledger", path, "step", log, *limit)[0] == 2 and not path.exists()
    assert call(capsys, "ledger", path, "step", log, *limit, "--adjacency", "zero_out")[0] == 0
    assert call(capsys, "ledger", path, "step", log)[0] == 0
    _, left, _ = call(capsys, "ledger", path, "left", log, "--format", "json")
    for action in ("step", "left"):
        assert "asked is 'zero_out'" in call(capsys, "ledger", path, action, other)[2]
    with hs.Accountant(path) as accountant:
        assert accountant.run == SGD * 20
        assert json.loads(left)["rows"][0]["left"] == accountant.steps_left(SGD * 10) == 23


def test_a_ledger_is_a_run(capsys, tmp_path):
    path = tmp_path / "train.ledger"
    with hs.Accountant(path, adjacency="replace_one") as accountant:
        accountant.step(hs.gaussian(2.0), 3)
        # the file is looked at while this process holds it: its locks must stay
        assert "kept for replace_one, asked about add_remove" in call(capsys, "epsilon", path, "--delta", 1e-5)[2]
        same = ("--adjacency", "replace_one", "--format", "json")
        status, out, _ = call(capsys, "epsilon", path, f"A={path}", "--delta", 1e-5, *same)
        said = json.loads(out)
        assert status == 0 and [row["run"] for row in said["rows"]] == [str(path), "A"]
        assert said["rows"][0]["upper"] == hs.epsilon(hs.gaussian(2.0) * 3, 1e-5, adjacency="replace_one").upper
        status, out, _ = call(capsys, "check", path, *same)
        assert {row["kind"] for row in json.loads(out)["rows"]} == {"ledger"}
        assert call(capsys, "ledger", path, "step", path)[0] == 0
        assert accountant.steps == 6
        status, out, _ = call(
            capsys, "ledger", path, "left", "gaussian(2.0)", "--eps", 30, "--delta", 1e-5, "--format", "json"
        )
        assert json.loads(out)["adjacency"] == "replace_one"
        assert json.loads(out)["rows"][0]["left"] == accountant.steps_left(hs.gaussian(2.0), eps=30.0, delta=1e-5) > 0


def test_ledgers_are_not_asked_for_what_they_do_not_have(capsys, tmp_path):
    path, filter = tmp_path / "ledger", tmp_path / "filter"
    hs.Accountant(path).close()
    hs.GDPFilter(budget_mu=1.0, path=filter).close()
    (tmp_path / "text").write_text("nothing")
    for words, message in (
        ([path, "show", "gaussian(1)"], "show takes no RUN"),
        ([path, "show", "--new"], "--new goes with step"),
        ([path, "show", "--eps", 1], "hockeystick delta"),
        ([tmp_path / "new", "step", "gauss(1)", "--new"], "gauss"),
        ([path, "step", "gaussian(1)", "--new"], "exists: leave --new out"),
        ([path, "step", "gaussian(1)", "--eps", 1, "--delta", 1e-5], "keeps its own limit"),
        ([path, "step", "gaussian(1)", "--adjacency", "zero_out"], "keeps its own limit"),
        ([path, "step"], "name what ran"),
        ([path, "left", "gaussian(1)"], "has no limit"),
        ([path, "left", "gaussian(1)", "--eps", 1], "go together"),
        ([tmp_path / "new", "step", "gaussian(1)", "--new", "--delta", 1e-5], "go together"),
        ([filter, "show"], "GDPFilter, not of Accountant"),
        ([tmp_path / "text", "show"], "not a state file"),
        ([path, "burn"], "invalid choice"),
    ):
        status, out, err = call(capsys, "ledger", *words)
        assert status == 2 and message in err and not out, (words, err)
    assert not (tmp_path / "new").exists()
    assert "durable filter" in call(capsys, "epsilon", filter, "--delta", 1e-5)[2]
