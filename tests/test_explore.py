"""The explorer: what it draws is certified, what it writes can be read back, and its server lets nobody else in."""

import json
import shlex
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.explore import model
from hockeystick.explore.desk import DRAWN, NOW, REST, Desk
from hockeystick.explore.model import FPR, SAMPLERS, Choice, Given

DELTA = 1e-5
SMALL = Choice(noise=2.0, rate=0.02, steps=60, records=2_000, batch=50)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_what_is_drawn_is_what_the_library_answers(sampler):
    what = SMALL._replace(sampler=sampler)
    found = dict(model.pieces(what, DELTA, adjacency="add_remove"))
    assert found["epsilon"].upper == hs.epsilon(what.run, DELTA).upper
    longer = hs.epsilon(what.step * (what.steps + what.epoch), DELTA)
    assert found["epoch"].lower <= longer.upper and longer.lower <= found["epoch"].upper
    for figure, ask in (
        ("privacy", lambda eps: hs.delta(what.run, eps)),
        ("tradeoff", lambda fpr: hs.true_positive_rate(what.run, fpr)),
        ("steps", lambda k: hs.epsilon(what.step * int(k), DELTA)),
        ("noise", lambda noise: hs.epsilon(what._replace(noise=noise).run, DELTA)),
    ):
        x, bound = found[figure].x, found[figure].bound
        for i in (0, x.size // 3, x.size - 1):
            truth = ask(float(x[i]))
            assert bound.lower[i] <= truth.upper and truth.lower <= bound.upper[i], (figure, x[i])
            assert bound.upper[i] <= truth.upper * 1.06 + 1e-12, (figure, x[i])


def test_tradeoff_between_few_points_contains_the_truth():
    run = hs.laplace(1.0) + hs.gaussian(2.0)
    eps = np.linspace(-3.0, 3.0, 13)
    found = model.tradeoff(eps, [hs.delta(run, eps, direction=side) for side in ("remove", "add")])
    truth = hs.true_positive_rate(run, FPR[::12])
    assert np.all(found.lower[::12] <= truth.upper) and np.all(truth.lower <= found.upper[::12])
    assert np.all(found.upper[-9:] < 1.5 * found.lower[-9:])


def test_target_in_noise_out():
    for sampler in SAMPLERS:
        what = model.noise_for(SMALL._replace(sampler=sampler), 1.0, DELTA)
        assert hs.epsilon(what.run, DELTA).upper <= 1.0
        assert hs.epsilon(what._replace(noise=what.noise * (1 - 2e-5)).run, DELTA).lower > 1.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("noise", "-1"),
        ("noise", "one"),
        ("noise", "nan"),
        ("rate", "2"),
        ("rate", "0"),
        ("steps", "1.5"),
        ("steps", "0"),
        ("batch", "-3"),
    ],
)
def test_a_bad_field_is_refused_with_what_was_written(name, text):
    with pytest.raises(hs.DomainError, match=text.split(".")[0]):
        model.read(name, text)


def test_fields_read_what_they_show():
    assert model.read("steps", "1e3") == 1000 and isinstance(model.read("steps", "1e3"), int)
    assert model.read("rate", "1") == 1.0 and model.read("rate", " 0.25 ") == 0.25
    assert model.choice_of(SMALL.run) == Choice(noise=2.0, rate=0.02, steps=60)
    assert model.choice_of(hs.gaussian(3.0) * 4) == Choice("all records", 3.0, 1.0, 4)
    assert isinstance(model.choice_of(hs.laplace(1.0) * 2), Given)
    assert isinstance(model.choice_of(hs.gaussian(1.0, sensitivity=2.0) * 2), Given)


def test_what_is_copied_can_be_run():
    from hockeystick.cli import expression

    runs = {sampler: SMALL._replace(sampler=sampler) for sampler in SAMPLERS} | {"it's": Given(hs.laplace(2.0) * 3)}
    lines: list = []
    exec(model.as_python(runs, DELTA, {"adjacency": "add_remove"}), {"print": lambda *row: lines.append(row)})
    assert {name: bound.upper for name, bound in lines} == {n: hs.epsilon(w.run, DELTA).upper for n, w in runs.items()}
    rows = json.loads(model.as_json(runs, DELTA, {}))
    assert [hs.from_dict(row["run"]) for row in rows] == [what.run for what in runs.values()]
    del runs["it's"]
    _, verb, *words = shlex.split(model.as_command(runs, DELTA, {"adjacency": "zero_out"}))
    assert verb == "epsilon" and words[len(runs) :] == ["--delta", "1e-05", "--adjacency", "zero_out"]
    for word, what in zip(words[: len(runs)], runs.values(), strict=True):
        assert expression.parse(word.partition("=")[2]) == what.run


def test_the_last_question_comes_first_and_drops_the_one_before():
    deliveries, gone = [], threading.Event()

    def deliver(found):
        deliveries.append(found)
        desk.delivered()
        if any(piece == "last of b" for piece in found.values()):
            gone.set()

    def slow(what):
        for i in range(100):
            time.sleep(0.005)
            yield "curve", f"{what} {i}"

    desk = Desk(deliver)
    desk.ask("a", slow("old a"))
    time.sleep(0.06)
    desk.ask("a", slow("new a"))
    desk.ask("b", iter([("curve", "last of b")]))
    assert gone.wait(5)
    seen = [piece for found in deliveries for piece in found.values()]
    assert seen[0].startswith("old a") and "last of b" in seen
    late = [int(piece.split()[-1]) for piece in seen if " a " in piece]
    assert max(late) < 60  # neither was waited for
    desk.close()


def test_the_finer_rounds_of_a_run_wait_for_the_first_of_others():
    seen, gone, start = [], threading.Event(), threading.Event()

    def pieces(what):
        start.wait(5)
        for name, piece in (("first", None), (REST, None), ("finer", None)):
            seen.append(f"{what} {name}")
            yield name, piece
        if {"a finer", "b finer", "c finer"} <= set(seen):
            gone.set()

    desk = Desk(lambda found: desk.delivered())
    for what in "abc":
        desk.ask(what, pieces(what))
    start.set()
    assert gone.wait(5)
    desk.close()
    firsts = [seen.index(f"{what} first") for what in "abc"]
    assert max(firsts) < min(seen.index(f"{what} finer") for what in "abc")
    assert firsts[1] > firsts[2]  # what was asked last comes first


def test_numbers_are_delivered_before_curves_are_begun_and_finer_ones_wait_for_the_drawing():
    deliveries, begun, gone = [], {}, threading.Event()

    def pieces():
        for name in ("number", NOW, "curve", REST, "finer"):
            begun[name] = time.perf_counter(), len(deliveries)
            yield name, name
        gone.set()

    desk = Desk(lambda found: (deliveries.append([name for _, name in found]), desk.delivered()))
    desk.ask("a", pieces())
    assert gone.wait(5)
    desk.close()
    assert deliveries[:2] == [["number"], ["curve"]] and begun["curve"][1] == 1
    assert begun["finer"][0] - begun[REST][0] >= DRAWN
    order = [name for name, _ in model.pieces(SMALL, DELTA)]
    assert order[:3] == ["epsilon", "epoch", NOW]
    assert set(order[3 : order.index(REST)]) == {"privacy", "tradeoff", "steps", "noise"}


def test_a_piece_that_takes_long_does_not_hold_up_a_newer_question():
    found, end = {}, threading.Event()

    def slow():
        yield "curve", end.wait(20)

    def deliver(pieces):
        found.update(pieces)
        desk.delivered()

    desk = Desk(deliver)
    desk.ask("a", slow())
    desk.ask("b", slow())
    time.sleep(0.05)
    desk.ask("a", iter([("curve", "new")]))
    limit = time.monotonic() + 5
    while ("a", "curve") not in found and time.monotonic() < limit:
        time.sleep(0.01)
    assert found == {("a", "curve"): "new"}
    end.set()
    while ("b", "curve") not in found and time.monotonic() < limit:
        time.sleep(0.01)
    assert found == {("a", "curve"): "new", ("b", "curve"): True}
    desk.close()


def test_an_error_is_the_last_piece_of_its_run():
    found = {}
    arrived = threading.Event()
    desk = Desk(lambda pieces: (found.update(pieces), arrived.set()))
    desk.ask(0, model.pieces(SMALL._replace(sampler="batches of fixed size", batch=3_000), DELTA))
    assert arrived.wait(5)
    assert "must not exceed" in str(found[0, "error"])
    desk.close()


@pytest.fixture(scope="module")
def served():
    pytest.importorskip("bokeh")
    command = [sys.executable, "-m", "hockeystick", "explore", "60*gaussian(2.0)@0.02", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().split()[-1]
        process.terminate()


def status(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, "", error.headers


def test_the_server_is_for_those_with_the_token_on_this_machine(served):
    place, _, _ = served.partition("?")
    code, page, headers = status(served)
    assert code == 200 and headers["X-Frame-Options"] == "DENY" and headers["Referrer-Policy"] == "no-referrer"
    assert "//cdn" not in page and 'src="http' not in page  # nothing from elsewhere
    assert status(place)[0] == status(served[:-1])[0] == 403
    assert status(served, Origin="http://elsewhere.example")[0] == 403
    assert status(served, Host="elsewhere.example")[0] == 403
    for part in ("autoload.js", "metadata", "ws"):
        assert status(place + part)[0] == 403
    socket = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x" * 22 + "==",
    }
    address = served.replace("/?", "/ws?")
    assert (
        status(address, **socket, **{"Origin": "http://elsewhere.example", "Sec-WebSocket-Protocol": "bokeh, x.y"})[0]
        == 403
    )


def test_bad_arguments_are_refused():
    pytest.importorskip("bokeh")
    from hockeystick.explore.server import Explorer

    for bad in ({"delta": 2.0}, {"adjacency": "none"}, {"port": -1}, {"runs": dict.fromkeys("ABCDEFG", SMALL)}):
        with pytest.raises(hs.DomainError):
            Explorer(**bad)


def test_axes_hold_the_curves_and_stay_where_somebody_moved_them():
    pytest.importorskip("bokeh")
    from hockeystick.explore import figures

    for value in (1e-9, 0.03, 1.0, 1.4999, 2.0000001, 9.7, 4.4e5):
        low, high = figures.nice(value, up=False), figures.nice(value, up=True)
        assert low <= value <= high <= 1.51 * low
    curves = {name: piece for name, piece in model.pieces(SMALL, DELTA) if name in figures.PLANS}
    longer = {name: piece for name, piece in model.pieces(SMALL._replace(steps=600), DELTA) if name in figures.PLANS}
    for name in ("privacy", "steps", "noise"):
        drawn = figures.Drawn(name)
        drawn.fit([curves[name]])
        x = drawn.ranges["x"]
        assert x.start <= curves[name].x.min() and curves[name].x.max() <= x.end <= 1.5 * curves[name].x.max()
        assert drawn.ranges["y"].end >= curves[name].bound.upper.max()
        moved = x.start = 0.5 * (x.start + x.end)
        drawn.fit([curves[name], longer[name]])
        assert x.start == moved and drawn.ranges["y"].end >= longer[name].bound.upper.max()
        x.start, x.end = x.reset_start, x.reset_end  # what the button of the figure does
        drawn.fit([curves[name], longer[name]])
        assert x.end >= longer[name].x.max()
        drawn.fit([])
        assert x.end >= longer[name].x.max()


def test_columns_of_all_figures_go_together():
    pytest.importorskip("bokeh")
    from hockeystick.explore import figures

    curves = {name: piece for name, piece in model.pieces(SMALL, DELTA) if name in figures.PLANS}
    lines = figures.Lines({name: figures.Drawn(name) for name in figures.PLANS}, 0)
    lines.mark(SMALL, hs.epsilon(SMALL.run, DELTA), DELTA)
    lines.draw({"privacy": curves["privacy"]})
    lines.draw({name: curves[name] for name in ("tradeoff", "steps", "noise")})
    data = lines.source.data
    assert len({len(values) for values in data.values()}) == 1
    for name, series in curves.items():
        size = series.x.size
        assert np.array_equal(data[f"{name} x"][:size], series.x)
        assert data[f"{name} at least"][:size] == series.bound.lower.tolist()
        assert data[f"{name} at most"][:size] == series.bound.upper.tolist()
        assert set(data[f"{name} upper"][size:]) <= {data[f"{name} upper"][size - 1]}  # the last point again
    assert data["steps dot x"][0] == SMALL.steps and data["noise dot x"][0] == SMALL.noise
    lines.clear()
    assert all(np.isnan(values).all() for values in lines.source.data.values())


def test_in_a_browser(served):
    """Keys move a slider, whose move draws curves and not the axes under them; a wrong number is a message beside its
    field."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no chromium")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    page = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))

    def of(name, what):
        code = (
            "const model = globalThis.Bokeh?.documents[0]?.get_model_by_name(arguments[0]); return"
            " model?.[arguments[1]]"
        )
        return page.execute_script(code, name, what)

    def within(name, css):
        code = (
            "const doc = Bokeh.documents[0]; return Bokeh.index.find_one_by_id(doc.get_model_by_name(arguments[0]).id)"
        )
        return page.execute_script(code + ".shadow_el.querySelector(arguments[1])", name, css)

    def until(check):
        end = time.monotonic() + 20
        while not check():
            assert time.monotonic() < end
            time.sleep(0.05)

    try:
        page.get(served)
        until(lambda: "certified" in (of("0-cost", "text") or ""))
        before = of("0-cost", "text")
        page.execute_script(
            "const view = Bokeh.index.find_one_by_id(Bokeh.documents[0].get_model_by_name('tradeoff').id);"
            "window.drawn = {primary: 0, overlays: 0};"
            "for (const what in drawn) {"
            "  const canvas = view.canvas_view[what], prepare = canvas.prepare;"
            "  canvas.prepare = function() { drawn[what] += 1; return prepare.call(this); };"
            "}"
        )
        within("0-noise-slider", ".noUi-handle").send_keys("\ue014")  # arrow right
        until(lambda: float(of("0-noise", "value")) > 2 and of("0-cost", "text") != before)
        until(lambda: page.execute_script("return drawn.overlays") > 0)
        assert page.execute_script("return drawn.primary") == 0
        within("0-rate", "input").send_keys("x\ue007")  # enter
        until(lambda: of("0-rate-message", "visible"))
        assert "must be a number" in of("0-rate-message", "text")
    finally:
        page.quit()
