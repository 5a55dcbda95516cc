"""The few building blocks of HTML pages: text made harmless, tables, pairs, folded parts, the frame of a page.

``data`` is the only way for a text of a document into a page. Style and script are files of
``assets``; a page carries them inside, and its Content-Security-Policy lets nothing else run or load.
"""

import base64
import functools
import hashlib
import html
import importlib.resources
from collections.abc import Iterable, Sequence

from perfgate.report.escape import printable

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


def data(text: str) -> str:
    """Return HTML that shows ``text`` as it is, between tags and between quotes."""
    return html.escape(printable(text), quote=True)


def case_name(case_id: str) -> str:
    """Return a case's id with places where a browser may break it."""
    return data(case_id).replace("[", "<wbr>[").replace(",", ",<wbr>")


def frame(title: str, body: str) -> str:
    """Return a whole page; ``body`` is HTML, ``title`` text. Charts and the map of a fleet bring their own assets."""
    charts = ("uplot.js", "roofline.js") if 'class="live"' in body else ()
    maps = ("fleet",) if 'id="fleet"' in body else ()
    script = "".join(asset(name) for name in (*charts, "report.js", *(f"{name}.js" for name in maps)))
    styles = ("report.css", "trend.css", *(("uplot.css",) if charts else ()), *(f"{name}.css" for name in maps))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _PAGE.format(title=data(title), style="".join(map(asset, styles)), digest=digest, body=body, script=script)


@functools.cache
def asset(name: str) -> str:
    """Return the text of a file of the assets folder."""
    return (importlib.resources.files("perfgate.report") / "assets" / name).read_text(encoding="utf-8")


def section(anchor: str, heading: str, *parts: str) -> str:
    """Return a section with a heading, "" where there is nothing in it."""
    inside = "\n".join(part for part in parts if part)
    return f'<section id="{anchor}">\n<h2>{data(heading)}</h2>\n{inside}\n</section>' if inside else ""


def folded(summary: str, inside: str) -> str:
    """Return a part that opens on demand, "" where there is nothing in it."""
    return f"<details>\n<summary>{data(summary)}</summary>\n{inside}\n</details>" if inside else ""


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a plain table of texts, the first column being the name of its row; "" without rows."""
    lines = "\n".join(
        f'<tr><th scope="row">{data(first)}</th>{"".join(f"<td>{data(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    if not lines:
        return ""
    head = "".join(f'<th scope="col">{data(heading)}</th>' for heading in headings)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{data(caption)}"><table class="plain">'
        f"<caption>{data(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a name and a text, those without a text left out."""
    lines = "".join(f"<div><dt>{data(name)}</dt><dd>{data(text)}</dd></div>" for name, text in pairs if text)
    return f'<dl class="facts">{lines}</dl>' if lines else ""


def bullets(texts: Iterable[str]) -> str:
    """Return a list of texts, "" without any."""
    lines = "".join(f"<li>{data(text)}</li>" for text in texts)
    return f"<ul>{lines}</ul>" if lines else ""
