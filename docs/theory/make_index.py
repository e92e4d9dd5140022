"""The index of the theory book: every statement with the code lines that cite it, every reference with the places that
use it.

    python docs/theory/make_index.py            writes docs/theory/statements.md
    python docs/theory/make_index.py --check    nothing is written; the exit status tells whether book and code agree

A statement is a line `**Theorem (key).** ...` below the anchor `(key)=`; `cited` behind the key says that its proof is
in the paper named, `background` that no code rests on it. A code line cites it in a comment, `[theory: key]`, several
keys with commas between. Papers are cited as `[ABC12, Thm 3]` from code and book alike, and have an entry `- [ABC12]
...` in references.md."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

BOOK = Path(__file__).resolve().parent
ROOT = BOOK.parent.parent
STATEMENT = re.compile(r"^\*\*(\w+) \(([a-z0-9.-]+)((?:, \w+)*)\)\.\*\*", re.MULTILINE)
CITATION = re.compile(r"\[theory: ([^\]]*)\]")
PAPER = re.compile(r"[A-Z][A-Za-z]+\+?\d\d")
PAPERS = re.compile(rf"\[({PAPER.pattern}[,;\]][^\]\[]*|{PAPER.pattern})\]?")
OUTSIDE = re.compile(r"[\[;(]\s*maths|\bmaths [A-Z][.\s]?\d|\bTRAP [A-Z]-\d")
CODE = (".c", ".h", ".py", ".pyx", ".pxd", ".pxi")
KINDS = ("Definition", "Assumption", "Lemma", "Theorem", "Corollary")


class Statement(NamedTuple):
    """One statement of the book: where it stands, and whether a proof follows it."""

    kind: str
    key: str
    marks: tuple
    page: str
    proved: bool


def sources():
    """(path relative to the root, text) of all code, tests and programs."""
    for folder in ("csrc", "src", "tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in CODE and not path.name.startswith(("_core.c", "test_theory")):
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def pages():
    """(name, text) of the pages of the book that are written by hand, in the order of its table of contents."""
    contents = (BOOK / "index.md").read_text("utf-8")
    order = ["index", *re.findall(r"^[\w-]+$", contents.split("```{toctree}")[1], re.MULTILINE)]
    for name in order:
        if name != "statements":
            yield name, (BOOK / f"{name}.md").read_text("utf-8")


def statements():
    """All statements, in the order of the pages."""
    found = []
    for page, text in pages():
        matches = list(STATEMENT.finditer(text))
        for i, match in enumerate(matches):
            end = matches[i + 1].start() if i + 1 < len(matches) else len(text)
            marks = tuple(match[3].replace(",", "").split())
            found.append(Statement(match[1], match[2], marks, page, "*Proof" in text[match.end() : end]))
    return found


def citations():
    """key -> [(path, line), ...] of every `[theory: key]`."""
    found = {}
    for path, text in sources():
        for match in CITATION.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for key in re.findall(r"[^\s,*]+", match[1]):
                found.setdefault(key, []).append((path, line))
    return found


def papers():
    """paper -> [(place, line), ...] of every use in code and book."""
    found = {}
    texts = [*sources(), *((f"docs/theory/{page}.md", text) for page, text in pages() if page != "references")]
    for place, text in texts:
        for match in PAPERS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for key in PAPER.findall(match[1]):
                found.setdefault(key, []).append((place, line))
    return found


def references():
    """Keys of the list of references, in order."""
    return re.findall(rf"^- \[({PAPER.pattern})\]", (BOOK / "references.md").read_text("utf-8"), re.MULTILINE)


def checks():
    """key -> [program, ...] that would fail: tests that cite the key, and those of error-terms.md whose tables link to
    it."""
    found = {}
    for key, where in citations().items():
        found[key] = [path for path, _ in where if path.startswith("tests/")]
    for section in dict(pages()).get("error-terms", "").split("\n## "):
        programs = re.findall(r"`(tests/[\w/.]+)`", section)
        for key in re.findall(r"\]\(#([^)]+)\)", section):
            found[key] = found.get(key, []) + programs
    return {key: sorted(set(paths)) for key, paths in found.items()}


def problems(uncited=True):
    """What book and code do not agree on, a line each."""
    book, cited, entries, used = statements(), citations(), references(), papers()
    keys = [statement.key for statement in book]
    found = [f"{key}: stated {keys.count(key)} times" for key in sorted(set(keys)) if keys.count(key) > 1]
    anchors = {key for _, text in pages() for key in re.findall(r"^\(([^)]+)\)=$", text, re.MULTILINE)}
    for statement in book:
        place = f"docs/theory/{statement.page}.md"
        if statement.kind not in KINDS:
            found.append(f"{place}: {statement.key} is a {statement.kind}, not one of {', '.join(KINDS)}")
        if statement.key not in anchors:
            found.append(f"{place}: {statement.key} has no anchor ({statement.key})= above it")
        if statement.kind in KINDS[2:] and not statement.proved and "cited" not in statement.marks:
            found.append(f"{place}: {statement.key} has no proof and is not marked as cited")
        by_code = any(path.startswith(("csrc", "src")) for path, _ in cited.get(statement.key, ()))
        if uncited and not by_code and "background" not in statement.marks:
            found.append(f"{place}: no code cites {statement.key}, and it is not marked as background")
    for key, where in sorted(cited.items()):
        if key not in keys:
            found += [f"{path}:{line}: [theory: {key}] is not stated in the book" for path, line in where]
    for key, where in sorted(used.items()):
        if key not in entries:
            found += [f"{place}:{line}: [{key}] has no entry in docs/theory/references.md" for place, line in where[:1]]
    found += [f"docs/theory/references.md: nothing uses [{key}]" for key in entries if key not in used]
    for name, text in pages():
        for target in re.findall(r"\]\(#([^)]+)\)", text):
            if target not in anchors:
                found.append(f"docs/theory/{name}.md: the link to #{target} leads nowhere")
    everything = [*sources(), *((f"docs/theory/{page}.md", text) for page, text in pages())]
    for place, text in everything:
        for match in OUTSIDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{place}:{line}: {match[0]!r} is a document outside the repository")
    return found


def index():
    """The text of statements.md."""
    cited, used, tests = citations(), papers(), checks()
    out = ["# Index of statements", ""]
    out += [
        "Generated from the book and the code by `docs/theory/make_index.py`. What is not marked as *cited* is proved"
        " where it"
    ]
    out += [
        "stands, definitions and assumptions apart. Python files are those of `src/hockeystick`, C files those of"
        " `csrc`."
    ]
    out += ["", "| statement | | the lines that rest on it | the tests that would fail |", "|---|---|---|---|"]
    for one in statements():
        kind = ", ".join([one.kind, *one.marks])
        places = [f"{path}:{line}" for path, line in cited.get(one.key, ()) if not path.startswith("tests/")]
        columns = (places, tests.get(one.key, ()))
        lines, programs = (
            " ".join(
                f"`{name.removeprefix('src/hockeystick/').removeprefix('csrc/').removeprefix('tests/')}`"
                for name in names
            )
            for names in columns
        )
        out.append(f"| [{one.key}](#{one.key}) | {kind} | {lines} | {programs} |")
    out += ["", "## Papers", "", "| paper | used in |", "|---|---|"]
    for key in references():
        places = sorted({place for place, _ in used.get(key, ())})
        out.append(f"| [{key}](references.md) | {' '.join(f'`{place}`' for place in places)} |")
    return "\n".join(out) + "\n"


def write():
    """Write statements.md."""
    (BOOK / "statements.md").write_text(index(), "utf-8")


def setup(app):
    """As a Sphinx extension: the index is written anew by every build, so that it is never out of date."""
    app.connect("config-inited", lambda *_: write())
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    if "--check" in sys.argv:
        wrong = problems()
        print("\n".join(wrong) or "book and code agree")
        sys.exit(bool(wrong))
    write()
