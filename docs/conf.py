"""Settings of the documentation. `make docs` builds it offline; reference, command line and results are generated from the package."""

import os
import re
import runpy
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import hushgraph

HERE = Path(__file__).parent
os.environ.setdefault("HUSHGRAPH_STATE", tempfile.mkdtemp())  # ledgers of examples need no record
os.environ.setdefault("MPLBACKEND", "agg")

project = "hushgraph"
author = project_copyright = "The hushgraph developers"
release = version = hushgraph.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery", "**/README.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
default_role = "literal"  # docstrings set code between single backticks

# ---- pages ------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# ---- reference --------------------------------------------------------------------------------------------------

autosummary_filename_map = runpy.run_path(str(HERE / "reference" / "pages.py"))["write"](HERE)
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ---- gallery ----------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": "reference/generated/backreferences",
    "doc_module": ("hushgraph",),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "copyfile_regex": "",
    "matplotlib_animations": False,
    "parallel": True,  # as many processes as `sphinx -j` has
    "ignore_repr_types": r"matplotlib\.",  # figures are shown; their names are not
}

# ---- looks ------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "hushgraph"
html_static_path = ["_static"]
html_css_files = ["hushgraph.css"]
html_js_files = [("hushgraph.js", {"defer": "defer"})]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # not copied, nor are the lines without a prompt, which are output
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"  # not what a block prints
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": f"hushgraph {release}"},
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "install": []}

# Where a public name without its package is looked up; a plain word such as `sure` only in the first two.
HOMES = ("", "wavelets.", "baselines.", "privacy.", "datasets.", "graphs.", "files.", "plotting.")
SPECIAL = re.compile(r"[|*]|(?<=\w)_(?!\w)")


def formulas_are_text(app, what, name, obj, options, lines):
    """Escape bars, stars and trailing underscores in docstrings, whose formulas are plain text. Code and literals are not changed."""
    code = False
    for i, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            parts = re.split(r"(``.*?``|`.*?`)", line)
            lines[i] = "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\g<0>", part) for part in parts)


def results_are_pages(app, docname, source):
    """Replace links into benchmarks/results, which work in the repository, by links to the pages generated from those files."""
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/results/([^)]*\.md)", r"](/results/\1", source[0])


def names_are_links(app, doctree, docname):
    """Link each public name that is set as code in a page, `denoise` or `privacy.release(...)`, to its reference."""
    known = app.env.get_domain("py").objects
    for literal in list(doctree.findall(nodes.literal)):
        name = re.fullmatch(r"(?:hg\.|hushgraph\.)?([A-Za-z_]\w*(?:\.\w+)*)(\(.*\))?", literal.astext(), re.DOTALL)
        if not name or isinstance(literal.parent, nodes.reference | nodes.title | addnodes.desc_name):
            continue
        homes = HOMES if "_" in name[1] or name[1][:1].isupper() else HOMES[:2]
        entry = next((known[full] for home in homes if (full := f"hushgraph.{home}{name[1]}") in known), None)
        if entry and entry.docname != docname:
            uri = app.builder.get_relative_uri(docname, entry.docname) + f"#{entry.node_id}"
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), internal=True, refuri=uri))


def setup(app):
    app.connect("autodoc-process-docstring", formulas_are_text, priority=400)  # before numpydoc
    app.connect("source-read", results_are_pages)
    app.connect("doctree-resolved", names_are_links)
