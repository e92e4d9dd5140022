"""The explorer: runs, their sliders and their certified curves on a page in the browser. Needs the extra `explore`.

model.py      what a field says, and the curves of a run, ever finer; knows nothing of widgets
desk.py       one thread that computes what was asked for last first
page.py       the widgets and figures of a session, with page.html
server.py     the server: this machine only, a token in the address, no other origin
command.py    `hockeystick explore`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def serve(
    runs: Mapping[str, Any] | None = None,
    *,
    delta: float = 1e-5,
    adjacency: str = "add_remove",
    port: int = 0,
    browser=True,
):
    """Serve the explorer until interrupted, and open it in a browser.

    Parameters
    ----------
    runs : mapping, optional
        From names to what is drawn first, at most six: Run or Mechanism. One run of 1,000 steps if not given.
    delta : float, default 1e-5
        Where eps is asked for, in (0, 1).
    adjacency : "add_remove", "replace_one" or "zero_out"
        As in `hockeystick.epsilon`.
    port : int, default 0
        Of 127.0.0.1; 0 is any that is free.
    browser : bool, default True
        Whether to open the page. Its address, with the token that it asks for, is printed in any case.

    Raises
    ------
    DomainError
        For an argument outside its domain.
    ImportError
        If Bokeh is not installed.
    """
    try:
        from .server import Explorer
    except ModuleNotFoundError as error:
        raise ImportError("the explorer needs Bokeh: pip install 'hockeystick[explore]'") from error
    explorer = Explorer(runs, delta=delta, adjacency=adjacency, port=port)
    print(f"The explorer is at {explorer.url}\nCtrl-C ends it.", flush=True)
    explorer.run(browser)
