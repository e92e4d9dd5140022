"""Blocks of the pages that do more than one process can: environments, installations, builds, a server, pictures. A
shell runs them as they stand, in a copy of the tree, with what was compiled in it, and in the environment that
CONTRIBUTING.md makes.

    python tests/pages.py            what a reader types first: `.ci/run docs`
    python tests/pages.py --long     the whole test suite and the pictures of the papers as well

tests/test_examples.py runs all other blocks, and has every command of a page here that it does not run itself.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST = ROOT / "CONTRIBUTING.md"
PAGES = [FIRST, ROOT / "README.md", *sorted(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)]
BLOCK = re.compile(
    r"^(?:(?P<heading>#+ .*)|(?P<fence>`{3,})(?:\{code-block\}"
    r" *)?(?P<language>[\w{}-]*).*\n(?P<body>(?s:.*?))^(?P=fence) *$)",
    re.MULTILINE,
)
CAPTION = re.compile(r"^:caption: (\S+\.\w+)$", re.MULTILINE)
SHELLS = ("console", "", "sh")

LONG = ("pytest tests", "python benchmarks/figures.py")
"""Minutes: only with --long. The first is a step of .ci/run of its own."""

SERVER = """
{command} > server.log &
server=$!
for i in $(seq 300); do grep -q "is at http" server.log && break; sleep 0.1; done
python -c "import sys, urllib.request; assert urllib.request.urlopen(sys.argv[1]).status == 200" \\
    "$(sed -n "s/.* is at //p" server.log)"
kill $server
wait $server || true
"""
"""A server does not end: it has to say where it is, and to answer there."""


def commands(language: str, body: str) -> list[tuple[str, str | None]]:
    """(command, what it prints or None) of a block: after "$ " in a console, else each line that is a command."""
    body = body.replace("\\\n", " ")
    if language == "console":
        return [tuple(part.partition("\n")[::2]) for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]]
    return [(command.strip(), None) for line in body.splitlines() for command in line.split("&&")]


def inside(command: str) -> bool:
    """Whether test_examples.py runs a command in its own process: those of this package that end."""
    words = command.split()
    return not words or words[0] == "#" or (words[0] == "hockeystick" and words[1] != "explore")


def outside(page: Path) -> list[tuple[str, str]]:
    """(command, caption of a file or "") of a page, in order: what needs a shell, and the files that it may read."""
    found = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        body = block["body"] or ""
        caption = CAPTION.search(body)
        if caption:
            found.append((body.split("\n\n", 1)[1], caption[1]))
        elif block["fence"] and (block["language"] or "") in SHELLS:
            found += [(command, "") for command, _ in commands(block["language"] or "", body) if not inside(command)]
    return found if any(not caption for _, caption in found) else []


def script(long: bool, folder: Path) -> list[str]:
    """The lines of the shell; files that pages show by a caption are written to the folder."""
    lines = ["set -euo pipefail"]
    for page in PAGES:
        for text, caption in outside(page):
            bare = text.split("#")[0].strip()
            if caption:
                (folder / caption).write_text(text, encoding="utf-8")
            elif bare.split()[1] == "explore":
                lines.append(SERVER.format(command=bare))
            elif long or bare not in LONG:
                lines += [f"printf '%s\\n' {bare!r}", bare]
    return lines


def main() -> int:
    """The exit status of the shell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--long", action="store_true", help="the test suite and the pictures as well")
    long = parser.parse_args().long
    left = shutil.ignore_patterns(".git", "lib.*", "bdist.*", "_build", ".venv", "*.so", "__pycache__", "*.egg-info")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        shutil.copytree(ROOT, folder, ignore=left)
        return subprocess.run(["bash", "-c", "\n".join(script(long, folder))], cwd=folder).returncode


if __name__ == "__main__":
    sys.exit(main())
