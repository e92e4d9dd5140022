"""The server: Bokeh's, on 127.0.0.1 alone, for those who have the token.

A page of another origin can send requests to 127.0.0.1, and a name of its own can be made to point there. So every
request but for Bokeh's own scripts, which are public, must name this address as its host, carry the token (the web
socket's too), and come from no other origin. The answers say that they must not be framed, kept, or named to other
sites."""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
import webbrowser
from functools import partial

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.server import Server
from tornado.web import HTTPError

from ..arguments import one_of
from ..bound import DomainError
from ..what.mechanism import as_run, count
from ..what.pair import ADJACENCIES
from .model import Choice, Given, choice_of, number
from .page import MOST, Page

TURN = 2e-4
"""Seconds for which the thread that computes may keep the one that talks to the browser waiting, some times a message.
Python has 5 ms."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Door(AuthProvider):
    """Lets in whom the head of the file describes."""

    def __init__(self, host: str, token: str):
        self.host, self.token = host, token
        super().__init__()

    async def _ask(self, handler) -> str:
        request = handler.request
        token = handler.get_query_argument("token", "")
        origin = request.headers.get("Origin")
        own = request.host == self.host and origin in (None, f"http://{self.host}")
        if not own or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise HTTPError(403)
        for name, value in HEADERS.items():
            handler.set_header(name, value)
        # Bokeh sends a message in pieces, and Nagle's algorithm waits 40 ms between two.
        request.connection.stream.set_nodelay(True)
        return "here"

    get_user = get_login_url = login_handler = logout_handler = logout_url = None
    login_url = "/"  # Bokeh asks for one, and sends nobody there

    @property
    def get_user_async(self):
        return self._ask


class Explorer:
    """A server that listens; `url` holds the token. Arguments as in `hockeystick.explore.serve`."""

    def __init__(self, runs=None, *, delta=1e-5, adjacency="add_remove", port=0):
        one_of("adjacency", adjacency, ADJACENCIES)
        delta = number("delta", str(delta))
        if not 0 < delta < 1:
            raise DomainError(f"delta must be in (0, 1), got {delta!r}")
        count("port", port, 0, 65535)
        first = {"A": Choice()} if not runs else {str(name): _what(run) for name, run in runs.items()}
        if len(first) > MOST:
            raise DomainError(f"at most {MOST} runs are drawn, got {len(first)}")
        with socket.socket() as free:  # Bokeh wants to know its origin before it listens
            free.bind(("127.0.0.1", port))
            host, port = free.getsockname()
        host, token = f"{host}:{port}", secrets.token_urlsafe(32)
        page = partial(Page, runs=first, delta=delta, adjacency=adjacency)
        self.server = Server(
            {"/": Application(FunctionHandler(page))},
            address="127.0.0.1",
            port=port,
            auth_provider=Door(host, token),
            allow_websocket_origin=[host],
            sign_sessions=True,
            secret_key=secrets.token_urlsafe(32),
        )
        self.url = f"http://{host}/?token={token}"

    def run(self, browser: bool = True) -> None:
        """Serve until interrupted."""
        loop = self.server.io_loop
        self.server.start()
        sys.setswitchinterval(TURN)
        if browser:
            loop.add_callback(webbrowser.open, self.url)
        try:
            loop.start()
        except KeyboardInterrupt:
            pass
        finally:
            self.server.stop()


def _what(run) -> Choice | Given:
    return run if isinstance(run, Choice | Given) else choice_of(as_run(run))
