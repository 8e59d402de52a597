"""How Sphinx builds the docs: plain Markdown (MyST), API pages and a map of the files from the docstrings."""

import runpy
from pathlib import Path

import evenfeed

file_map = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "file_map.py"))
file_map["PAGE"].write_text(file_map["page"]())
del file_map  # Sphinx would try to pickle it

project = "evenfeed"
author = "The evenfeed authors"
version = release = evenfeed.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "evenfeed"
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
