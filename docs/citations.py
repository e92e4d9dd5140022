"""An extension of the site: a key of the references, such as GLW21, leads to its entry wherever text says it."""

import re
from pathlib import Path

from docutils import nodes

PAGE = "theory/references"
KEYS = re.findall(
    r"^- \[(\S+)\] ", Path(__file__).parent.joinpath(f"{PAGE}.md").read_text(encoding="utf-8"), re.MULTILINE
)
ANY = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, KEYS))})(?![\w+])")
LEFT = nodes.literal, nodes.FixedTextElement, nodes.reference, nodes.title, nodes.math


def anchor(key: str) -> str:
    return nodes.make_id(f"reference {key}")


def link(app, doctree, docname: str) -> None:
    if docname == PAGE:
        for entry in doctree.findall(nodes.list_item):
            entry["ids"].append(anchor(entry.astext()[1:].partition("]")[0]))
        return
    page = app.builder.get_relative_uri(docname, PAGE)
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, LEFT):
            continue
        pieces = ANY.split(text)
        if len(pieces) > 1:
            new = [nodes.Text(piece) for piece in pieces]
            for i in range(1, len(pieces), 2):
                new[i] = nodes.reference("", pieces[i], internal=True, refuri=f"{page}#{anchor(pieces[i])}")
            text.parent.replace(text, new)


def setup(app):
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
