"""The roofline as a page of its own: the picture, and the same in text for search and screen readers."""

import html

from perfgate.report.roofline_chart import RooflineChart
from perfgate.report.roofline_figure import render_roofline_svg
from perfgate.report.roofline_text import render_roofline_text

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem; font: 1rem/1.5 sans-serif }}
svg {{ max-width: 100%; height: auto }}
pre {{ overflow-x: auto; font-size: 0.85rem; line-height: 1.3 }}
</style>
</head>
<body>
<figure role="img" aria-label="{title}">{svg}</figure>
<pre>{text}</pre>
</body>
</html>
"""


def render_roofline_page(chart: RooflineChart) -> str:
    """Render a chart as an HTML page that needs no other file."""
    svg = render_roofline_svg(chart)
    return _PAGE.format(
        title=html.escape(chart.title, quote=True),
        svg=svg[svg.index("<svg") :],
        text=html.escape(render_roofline_text(chart, 100)),
    )
