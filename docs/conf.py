"""Configuration of the documentation site: `scripts/docs.sh` builds it."""

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path

import click
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

import rnsdask
from rnsdask.cli import main

project = "rnsdask"
author = "rnsdask developers"
copyright = author  # noqa: A001  (Sphinx calls it so)
version = release = importlib.metadata.version("rnsdask")


def _repository_url():
    """Return the web address of the repository that this checkout was cloned from, or None."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), "config", "--get", "remote.origin.url"]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    # git@host:owner/name.git and https://user@host/owner/name.git, without names of users
    parts = re.fullmatch(
        r"(?:https://|ssh://)?(?:[^@/]*@)?([\w-]+(?:\.[\w-]+)+)[:/](.+?)(?:\.git)?\s*", found.stdout
    )
    return f"https://{parts[1]}/{parts[2]}" if parts else None


extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["benchmarks/*.json"]
templates_path = ["_templates"]
smartquotes = False  # options begin with two hyphens
default_role = "code"  # docstrings name parameters so

# Markdown, as GitHub shows the same pages.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # pages show the outputs that notebooks keep

# Pages of functions and classes, from their docstrings, which tell the types of parameters.
add_module_names = False
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are not code

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "footer_end": [],
    "footer_start": ["copyright"],
    "header_links_before_dropdown": 7,
    "icon_links": [
        {"name": "Repository", "url": url, "icon": "fa-solid fa-code-branch"}
        for url in [_repository_url()]
        if url
    ],
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "changelog": []}

_HELP_COLUMNS = 80
_ARRAYS = ("RNSArray", "IntervalRNSArray", "PositionalArray", "FieldArray")
_DOCS = Path(__file__).resolve().parent
_MACHINES = {f"benchmarks/{path.stem}" for path in _DOCS.glob("benchmarks/*.json")}
_logger = logging.getLogger(__name__)


def _visit_math(writer, node):
    """Write a formula as MathML, which browsers draw without scripts or fonts from elsewhere."""
    is_block = isinstance(node, nodes.math_block)
    formula = node.astext().strip("`")  # GitHub's form of inline mathematics has backticks within the dollars
    try:
        markup = tex2mathml(formula, as_block=is_block)
        # Bars are fences here, never relations, and floors of sums are not as tall as the signs of sums.
        markup = re.sub(r"<mo(?=[^>]*>\|<)", '<mo lspace="0" rspace="0"', markup)
        markup = re.sub(r"<mo>(?=[⌊⌋⌈⌉]<)", '<mo stretchy="false">', markup)
    except MathError as error:
        _logger.warning("%s in the formula %s", error, formula, location=node)
        markup = ""
    writer.body.append(f'<div class="math">{markup}</div>' if is_block else markup)
    raise nodes.SkipNode


def _mark_up(_app, _what, _name, _object, _options, lines):
    """Link the pages that a docstring names, and escape the star of shapes such as (n, *shape)."""
    for number, line in enumerate(lines):
        parts = re.split("(``.*?``)", line)  # each second part is literal
        parts[::2] = [re.sub(r"(?<![\w*\\])\*(?=\w+[,)])", r"\\*", part) for part in parts[::2]]
        parts[::2] = [re.sub(r"\bdocs/([\w-]+)\.md\b", r":doc:`/\1`", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def _find_member(app, env, node, content):
    """Resolve a reference to a base class, which has no page, in the array type that inherits its members."""
    base, _, member = node.get("reftarget", "").lstrip(".").rpartition(".")
    if node.get("refdomain") != "py" or base not in ("NumberArray", "IntegerArray"):
        return None
    for array in _ARRAYS:
        if hasattr(getattr(rnsdask, array), member):
            target = f"rnsdask.{array}.{member}"
            domain = env.domains["py"]
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, node["reftype"], target, node, content
            )
    return None


def _copy_notebooks(_app):
    """Copy the notebooks below the folder of the pages, where Sphinx finds them."""
    folder = _DOCS / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for notebook in (_DOCS.parent / "notebooks").glob("*.ipynb"):
        shutil.copy2(notebook, folder)  # with its time, so that Sphinx reads it again only after a change


def _link_notebooks(_app, name, source):
    """Turn links between pages and notebooks, which are right in the repository, into those of the site."""
    if name.startswith("notebooks/"):
        source[0] = source[0].replace("](../docs/", "](../")
    else:
        source[0] = source[0].replace("](../notebooks/", "](notebooks/")


def _write_help_texts(_app, name, source):
    """Append what each command prints for --help to the page of all commands."""
    if name != "commands":
        return
    group = click.Context(main, info_name="rnsdask", terminal_width=_HELP_COLUMNS)
    parts = ["", "## rnsdask", _as_code(main.get_help(group))]
    for heading, names in main.sections.items():
        parts.append(f"## {heading}")
        for command in map(main.commands.get, names):
            context = click.Context(command, parent=group, info_name=command.name)
            parts += [f"### `{command.name}`", _as_code(command.get_help(context))]
    source[0] += "\n\n".join(parts)


def _as_code(text):
    return f"```{{code-block}} text\n:class: help\n\n{text}\n```"


def _reread_help_texts(_app, _env, _added, _changed, _removed):
    """Read the page of all commands anew each time, for it comes from the package."""
    return ["commands"]


class _WordsOfReaders(SphinxTransform):
    """Enter readers' words into the index, whose entries the search ranks above words of the text.

    `<!-- index: WORD, ... -->`, which GitHub does not show, enters words for the section or the row of a
    table where it stands. The tables of "How do I ...?" enter their tasks, and what other libraries call
    them; their examples link to the pages of functions.
    """

    default_priority = 800  # before domains collect the index

    def apply(self) -> None:
        for comment in list(self.document.findall(nodes.raw)):
            if found := re.fullmatch(r"<!-- index:\s+(.*?)\s+-->\s*", comment.astext(), re.DOTALL):
                comment.replace_self(self._entries(comment, re.split(r",\s*", found[1])))
        if self.env.docname == "how-do-i":
            for row in self.document.findall(nodes.row):
                if isinstance(row.parent, nodes.tbody):
                    self._enter_task(row)

    def _enter_task(self, row):
        task, *_, elsewhere = row.children
        words = [re.sub("^(an?|the) ", "", task.astext().partition(",")[0])]
        names = (re.match(r"[\w.]{3,}", name.astext()) for name in elsewhere.findall(nodes.literal))
        if len(row) == 4:  # task, example, what it gives, what others call it
            words += [name[0] for name in names if name]
        for code in list(row.findall(nodes.literal)):
            if function := re.match(r"rd\.([\w.]+)\(", code.astext()):
                target = f"rnsdask.{function[1]}"
                link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=target)
                link["refdoc"] = self.env.docname
                code.replace_self(link)
                link += code
        task.insert(0, self._entries(task, words))

    def _entries(self, node, words):
        """Return index entries that lead to the row or the section of a node, or to the top of its page."""
        while not isinstance(node, nodes.row | nodes.section):
            node = node.parent
        if isinstance(node, nodes.row) and not node["ids"]:
            node["names"].append("to " + node[0].astext().partition("<!--")[0])
            self.document.set_id(node)
        anchor = "" if isinstance(node.parent, nodes.document) else node["ids"][0]
        return addnodes.index(entries=[("single", word, anchor, "main", None) for word in words])


def _leave_out_of_search(app, _doctree):
    """Keep the text of machines' pages, which are tables of figures, out of the search."""
    if app.env.docname in _MACHINES:
        app.env.metadata[app.env.docname]["nosearch"] = "yes"


def _name_pages(_app, doctree):
    """Show the titles of pages where the text of a link is the name of a file, as it is on GitHub."""
    for link in doctree.findall(addnodes.pending_xref):
        if link.get("refdomain") == "doc" and link.astext().endswith(".md"):
            link["refexplicit"] = False
            link[:] = [nodes.inline()]


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas, the index of readers' words and the handlers of docstrings."""
    app.add_transform(_WordsOfReaders)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
    app.connect("builder-inited", _copy_notebooks)
    app.connect("source-read", _link_notebooks)
    app.connect("source-read", _write_help_texts)
    app.connect("env-get-outdated", _reread_help_texts)
    app.connect("autodoc-process-docstring", _mark_up, priority=100)  # before numpydoc
    app.connect("doctree-read", _leave_out_of_search)
    app.connect("doctree-read", _name_pages)
    app.connect("missing-reference", _find_member)
