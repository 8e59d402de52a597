"""How Sphinx builds the docs: plain Markdown (MyST), API pages from docstrings, and generated lists of names and files."""

import runpy
from pathlib import Path

import evenfeed

for tool in ("file_map.py", "names_page.py"):
    made = runpy.run_path(str(Path(__file__).parent.parent / "tools" / tool))
    made["PAGE"].write_text(made["page"]())
    del made  # Sphinx would try to pickle it

project = "evenfeed"
author = copyright = "The evenfeed authors"
version = release = evenfeed.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "evenfeed"
# So that lines of code of 100 characters nearly fit.
html_theme_options = {"light_css_variables": {"code-font-size": "var(--font-size--small--3)"}}
exclude_patterns = ["_build"]

# A single backtick in a docstring is code, as in Markdown.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Inherited members belong to a class as users see it, down to Python's own classes.
autodoc_default_options = {
    "members": True,
    "inherited-members": "object,Exception,BaseException,OSError,tuple,int,Enum,IntEnum,ABC",
}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
myst_heading_anchors = 3
nitpicky = False
