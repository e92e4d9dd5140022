"""How soon the explorer's page shows what a slider was moved to, in headless Chromium.

    python benchmarks/bench_explore.py [--moves 30] [--runs 1] [--size 1360x1000]

Needs the extra `explore`, selenium, chromium and chromedriver. Times run from the move in the browser to the end of the
frame that shows it: through the web socket, the certified curves, and back. Two cores that others use make them many
times longer: the load is printed, and on Linux `chrt -r 1 python benchmarks/bench_explore.py` keeps others off while it
runs (but for 50 ms a second that the kernel leaves them, which is where the slowest moves come from). Before a time is
reported, what the figures hold is compared with the library's answers."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time

import numpy as np

import hockeystick as hs

FIGURES = ("privacy", "tradeoff", "steps", "noise")
SLIDERS = {"noise": 0.0, "steps": 2.6, "rate": -2.2}
"""Where moves of a slider start; it goes by 0.01 of a decade."""

MOVES = """
const [name, start, moves, pause, done] = arguments;
const model = name => Bokeh.documents[0].get_model_by_name(name);
const slider = model(`0-${name}-slider`), rows = [];
let row = {}, moved = 0, fresh = {};
const painted = key => { // the end of the frame: its style, layout and paint come after the scripts
  if (key in row) return;
  row[key] = 0;
  const mine = row, since = moved, channel = new MessageChannel();
  channel.port1.onmessage = () => { mine[key] = performance.now() - since; };
  channel.port2.postMessage(null);
};
const ends = [];
const listen = (signal, call) => { signal.connect(call); ends.push(() => signal.disconnect(call)); };
const seen = {};
for (const key of ["privacy", "tradeoff", "steps", "noise"]) {
  const plot = model(key), source = plot.renderers.find(r => r.glyph.type == "VArea").data_source;
  listen(source.properties.data.change, () => {
    const curve = String([...source.data[`${key} x`], ...source.data[`${key} upper`]]);
    if (curve == seen[key]) return;
    seen[key] = curve; fresh[key] = true; row[`${key} data`] ??= performance.now() - moved;
  });
  listen(Bokeh.index.find_one_by_id(plot.id).repainted, () => {
    if (fresh[key]) { painted(key); count[key] += 1; fresh[key] = false; }
  });
}
const count = {privacy: 0, tradeoff: 0, steps: 0, noise: 0};
const step = i => {
  if (i) rows.push(row);
  if (i == moves) { ends.forEach(end => end()); setTimeout(() => done([rows, count]), 1500); return; }
  row = {}; fresh = {}; moved = performance.now();
  slider.value = start + 0.01 * i;
  setTimeout(() => step(i + 1), pause);
};
step(0);
"""


def opened(size: str):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={size.replace('x', ',')}")
    page = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    page.set_script_timeout(300)
    return page


def model_of(page, name, what):
    code = "const model = globalThis.Bokeh?.documents[0]?.get_model_by_name(arguments[0]); return model?.[arguments[1]]"
    return page.execute_script(code, name, what)


def check(page) -> None:
    """What the figures hold of the first run is what the library answers."""
    sigma, q, steps = (float(model_of(page, f"0-{name}", "value")) for name in ("noise", "rate", "steps"))
    run = hs.poisson_subsampled(hs.gaussian(sigma), q) * int(steps)
    code = "return Bokeh.documents[0].get_model_by_name('privacy').renderers[0].data_source.data"  # one for all figures
    drawn = page.execute_script(code)
    i = len(drawn["privacy x"]) // 2
    truth = hs.delta(run, drawn["privacy x"][i])
    assert drawn["privacy at least"][i] <= truth.upper and truth.lower <= drawn["privacy at most"][i]
    for figure, value in (("steps", steps), ("noise", sigma)):
        i = int(np.argmin(np.abs(np.array(drawn[f"{figure} x"]) - value)))
        truth = hs.epsilon(run, 1e-5)
        assert drawn[f"{figure} at least"][i] <= truth.upper and truth.lower <= drawn[f"{figure} at most"][i]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--runs", type=int, default=1, help="cards on the page")
    parser.add_argument("--size", default="1360x1000", help="of the window")
    args = parser.parse_args()
    words = [f"{letter}={1000 + 100 * i}*gaussian(1.0)@0.01" for i, letter in enumerate("ABCDEF"[: args.runs])]
    command = [sys.executable, "-m", "hockeystick", "explore", *words, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        page = opened(args.size)
        try:
            page.get(server.stdout.readline().split()[-1])
            while "certified" not in (model_of(page, "0-cost", "text") or ""):
                time.sleep(0.1)
            time.sleep(2)
            for slider, start in SLIDERS.items():
                page.execute_async_script(MOVES, slider, start - 0.05, 4, 500)
                rows, _ = page.execute_async_script(MOVES, slider, start, args.moves, 500)
                check(page)
                print(
                    f"{slider} moved, load {os.getloadavg()[0]:.1f}: ms to the end of the frame: median, 90%; data"
                    " alone"
                )
                for key in FIGURES:
                    times, data = ([row.get(name, np.inf) for row in rows] for name in (key, f"{key} data"))
                    print(
                        f"  {key:9}{np.median(times):6.1f}{np.quantile(times, 0.9):6.1f}; {np.median(data):5.1f}",
                        flush=True,
                    )
            _, count = page.execute_async_script(MOVES, "noise", 0.0, 90, 33)
            print(
                "dragged for 3 s, a move every 33 ms: redraws a second:",
                {key: round(n / 3, 1) for key, n in count.items()},
            )
        finally:
            page.quit()
            server.terminate()


if __name__ == "__main__":
    main()
