"""The index of the theory book: every statement with the code lines that cite it, every reference with the places that
use it.

    python docs/theory/make_index.py            writes docs/theory/statements.md
    python docs/theory/make_index.py --check    nothing is written; the exit status tells whether book and code agree

A statement is a line `**Theorem (key).** ...` below the anchor `(key)=`; `cited` behind the key says that its proof is
in the paper named, `background` that no code rests on it. A code line cites it in a comment, `[theory: key]`, several
keys with commas between: the line that computes and, where that helps, the head of the file as well, which the index
leaves out. A test cites what would make it fail; a statement that no test cites must be part of the proof of one that
a test does cite. Papers are cited as `[ABC12, Thm 3]` from code and book alike, and have an entry `- [ABC12] ...` in
references.md."""

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
    rests_on: frozenset


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
            says = re.split(r"\n#+ ", text[match.end() : end])[0]
            links = frozenset(re.findall(r"\]\(#([^)]+)\)", says))
            found.append(Statement(match[1], match[2], marks, page, "*Proof" in says, links))
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


def heads():
    """path -> the last line of the comment or docstring that a file begins with; 0 of a file that has none."""
    found = {}
    for path, text in sources():
        end = re.match(r'/\*.*?\*/|""".*?"""', text, re.DOTALL)
        found[path] = text.count("\n", 0, end.end()) + 1 if end else 0
    return found


def computing(cited, ends):
    """key -> [(path, line), ...] of the code lines that compute what it says: no heads of files, no tests."""
    return {
        key: [(path, line) for path, line in where if path.startswith(("csrc", "src")) and line > ends.get(path, 0)]
        for key, where in cited.items()
    }


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
    """key -> [program, ...] that would fail: tests that cite it, and programs of error-terms.md."""
    found = {}
    for key, where in citations().items():
        found[key] = [path for path, _ in where if path.startswith("tests/")]
    for section in dict(pages()).get("error-terms", "").split("\n## "):
        programs = re.findall(r"`(tests/[\w/.]+)`", section)
        for key in re.findall(r"\]\(#([^)]+)\)", section):
            found[key] = found.get(key, []) + programs
    return {key: sorted(set(paths)) for key, paths in found.items()}


def through(book, tests):
    """key -> the nearest statements with tests whose proofs rest on it, for every statement that no test cites."""
    users = {}
    for one in book:
        for key in one.rests_on - {one.key}:
            users.setdefault(key, []).append(one.key)
    found = {}
    for one in book:
        level, seen = [one.key], {one.key}
        while level and not tests.get(one.key):
            level = [user for key in level for user in users.get(key, ()) if user not in seen]
            seen.update(level)
            found[one.key] = sorted({user for user in level if tests.get(user)})
            if found[one.key]:
                break
    return found


def problems(uncited=True):
    """What book and code do not agree on, a line each."""
    book, cited, entries, used = statements(), citations(), references(), papers()
    lines, tests = computing(cited, heads()), checks()
    indirectly = through(book, tests)
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
        if uncited and not lines.get(statement.key) and "background" not in statement.marks:
            found.append(f"{place}: no line that computes cites {statement.key}, and it is not marked as background")
        if uncited and not tests.get(statement.key) and not indirectly.get(statement.key):
            found.append(f"{place}: no test cites {statement.key}, nor a statement whose proof rests on it")
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


def short(name):
    """A path as the index shows it."""
    return re.sub(r"^(src/hockeystick|csrc|tests(?!/csrc))/", "", name)


def index():
    """The text of statements.md."""
    book, cited, used, tests = statements(), citations(), papers(), checks()
    lines, indirectly = computing(cited, heads()), through(book, tests)
    out = ["# Index of statements", ""]
    out += ["Generated from the book and the code by `docs/theory/make_index.py`. What is not marked *cited* is proved"]
    out += [
        "where it stands, definitions and assumptions apart. Python files are those of `src/hockeystick`, C files those"
    ]
    out += [
        "of `csrc`. Of a statement that is a part of proofs only, the statements are named through which a test would"
    ]
    out += ["find it."]
    out += ["", "| statement | | the lines that compute it | the tests that would fail |", "|---|---|---|---|"]
    for one in book:
        kind = ", ".join([one.kind, *one.marks])
        columns = ([f"{path}:{line}" for path, line in lines.get(one.key, ())], tests.get(one.key, ()))
        places, programs = (" ".join(f"`{short(name)}`" for name in names) for names in columns)
        if not programs:
            programs = "through " + ", ".join(f"[{key}](#{key})" for key in indirectly.get(one.key, ())[:3])
        out.append(f"| [{one.key}](#{one.key}) | {kind} | {places} | {programs} |")
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
