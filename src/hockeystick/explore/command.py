"""`hockeystick explore [RUN...]`."""

from __future__ import annotations

from ..cli import grammar, options
from . import serve
from .model import choice_of

more_explore = """

The command prints the address and opens it; Ctrl-C ends the server. Only this machine can reach the page, and only with
the token in its address."""


def arguments_explore(parser) -> None:
    parser.add_argument("--delta", type=options.number, default=1e-5, help="where eps is asked for, default 1e-5")
    parser.add_argument("--adjacency", default="add_remove", help=options.NEIGHBOURS)
    parser.add_argument("--port", type=options.whole, default=0, help="of 127.0.0.1; default: any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")


def answer_explore(args) -> str:
    given = args.runs or args.sigma is not None or args.steps is not None
    found = list(grammar.sources(args).values()) if given else []
    words = [word.removeprefix(f"{source.name}=") for source, word in zip(found, args.runs or [""], strict=False)]
    serve(
        {
            s.name: choice_of(s.run, word, s.kind == "log" and not args.columns)
            for s, word in zip(found, words, strict=True)
        },
        delta=args.delta,
        adjacency=args.adjacency,
        port=args.port,
        browser=not args.no_browser,
    )
    return "The explorer has ended."
