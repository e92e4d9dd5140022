"""The site: `sphinx-build -W -n --keep-going docs docs/_build`, after `pip install ".[docs]"`."""

import re
import sys
from pathlib import Path

import numpydoc.xref

import hockeystick

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "theory")]

project = "hockeystick"
author = "The hockeystick developers"
copyright = author
version = release = hockeystick.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are drawn without a network
    "sphinx_copybutton",
    "citations",
    "make_index",  # docs/theory/make_index.py: what cites what, written anew by every build
]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "literal"  # what stands between single backticks in a docstring
autodoc_typehints = "none"  # types stand in the docstrings, in words
autodoc_mock_imports = ["dask", "dp_accounting", "flwr", "opacus", "pipeline_dp"]  # what adapters adapt to
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc.xref.DEFAULT_LINKS.clear()  # they lead into the documents of other projects, which a build would ask for
numpydoc_xref_aliases = {
    name: f"hockeystick.{name}"
    for name in ("Accountant", "Bound", "Budget", "Mechanism", "Run", "AccuracyError", "DomainError")
}

html_theme = "furo"
pygments_dark_style = "monokai"
smartquotes = False  # "both" is what one types
html_title = "hockeystick"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Docstrings are written for a terminal: |x| is an absolute value, which reStructuredText takes for a
    substitution."""

    def escape(_app, _what, _name, _object, _options, lines):
        lines[:] = [re.sub(r"`[^`]*`|\|", lambda m: r"\|" if m[0] == "|" else m[0], line) for line in lines]

    def of_a_tuple(_app, _what, _name, thing, _skip, _options):
        """A field of a named tuple is described with its class."""
        return True if type(thing).__name__ == "_tuplegetter" else None

    app.connect("autodoc-process-docstring", escape)
    app.connect("autodoc-skip-member", of_a_tuple)
