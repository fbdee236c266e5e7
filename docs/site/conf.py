"""How Sphinx makes the documentation site of what `tools/site` lays together."""

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Operator, String, Text

project = "Cohkit"
author = "The Cohkit developers"
copyright = "The Cohkit developers"  # noqa: A001 -- Sphinx calls it so

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Cohkit"
html_copy_source = False
smartquotes = False
html_show_sphinx = False

# Headings are linked to as in the repository, by their words.
myst_heading_anchors = 5
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike"}
python_use_unqualified_type_names = True


SECTIONS = (
    "protocol|use|space|line|channels|messages|remote|home|states|variables|system|remotes|lines|guarantee|order|bounds"
    "|invariant|goals|policy|accesses"
)
ACTIONS = (
    "send|to|write|deferred|defer|read|stall|leave|unreachable|stay|if|done|lock|unlock|waits|reads|writes|dirty|holds"
)


class Coh(RegexLexer):
    """Protocol texts, roughly: what the grammar for editors tells apart more finely."""

    name = "Cohkit protocol"
    aliases = ("coh",)
    tokens = {  # noqa: RUF012 -- as the class asks for it
        "root": [
            (r"#.*$", Comment.Single),
            (r'"[^"]*"', String),
            (rf"\b({SECTIONS})\b", Keyword),
            (rf"\b({ACTIONS})\b", Keyword.Type),
            (r"[A-Za-z_]\w*", Name),
            (r"->|:=|[|;:,(){}=<>+*/.!&-]", Operator),
            (r"\s+", Text),
            (r".", Text),
        ]
    }


def setup(app):  # noqa: ANN001, ANN201, D103 -- Sphinx calls it
    app.add_lexer("coh", Coh)
