"""The page: one HTML file that opens from disk, asks for nothing, and says what it shows.

Whatever comes from a pool or a model is text here, and is escaped where it enters the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

import msgspec

from fot.report.drawing import PALETTE
from fot.report.exhibit import Exhibit, Step
from fot.report.published import published
from fot.report.table import MINUS, Table
from fot.report.words import count

__all__ = ["Content", "embedded", "page"]

_MORE = {
    "by-cell": "By model and benchmark",
    "cases": "Problem by problem",
    "front": "The Pareto front: found on one half of the problems, measured on the other",
    "front-tuned": "The Pareto front: found and measured on the same problems",
    "configurations": "All configurations, on all problems",
}
"""What people read over a table that is there besides the main one."""
_LONG = 40  # rows; a longer table scrolls in a box of its own
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_NEGATIVE = re.compile(r"(?<![\w.\-])-(?=\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Everything that a page shows. `made` are exhibits by step name, `absent` the reasons why others are not there."""

    title: str
    facts: Sequence[tuple[str, str]]
    banners: Sequence[str]
    sections: Mapping[str, Sequence[Step]]
    made: Mapping[str, Exhibit]
    absent: Mapping[str, str]
    drawings: Mapping[str, Sequence[str]]
    """SVG of the figures of each exhibit."""
    browser: object | None
    texts: object | None
    beside: bool
    footer: Sequence[str]


def page(content: Content) -> str:
    """The whole document."""
    static = files("fot.report") / "static"
    style, script = (static.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    drawing = files("fot").joinpath("static", "funnel.js").read_text(encoding="utf-8")  # the live view's own
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(content.title)}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        *_header(content),
        "<main>",
        *(part for title, steps in content.sections.items() for part in _section(content, title, steps)),
        *_browser(content),
        *_absent(content),
        "</main>",
        "<footer>",
        *(f"<p>{_text(line)}</p>" for line in content.footer),
        "</footer>",
        *([] if content.browser is None else [f"<script>\n{drawing}</script>", f"<script>\n{script}</script>"]),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _header(content: Content) -> Iterable[str]:
    yield "<header>"
    yield f"<h1>{escape(content.title)}</h1>"
    facts = " · ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in content.facts)
    yield f'<p class="facts">{facts}</p>'
    yield from (f'<p class="banner">{_text(banner)}</p>' for banner in content.banners)
    yield '<nav aria-label="Contents">'
    for title, steps in content.sections.items():
        links = [step for step in steps if step.name in content.made]
        if links:
            yield f"<section><strong>{escape(title)}</strong>"
            yield from (f'<a href="#{step.name}">{escape(step.title)}</a>' for step in links)
            yield "</section>"
    browse = '<a href="#browser">Browse all problems</a>' if content.browser is not None else ""
    yield f"<section><strong>The problems</strong>{browse}"
    yield '<a href="#absent">What is not here, and why</a></section>' if content.absent else "</section>"
    yield "</nav></header>"


def _section(content: Content, title: str, steps: Sequence[Step]) -> Iterable[str]:
    shown = [step for step in steps if step.name in content.made]
    if not shown:
        return
    yield f"<section><h2>{escape(title)}</h2>"
    for step in shown:
        yield from _exhibit(content, step)
    yield "</section>"


def _exhibit(content: Content, step: Step) -> Iterable[str]:
    exhibit = content.made[step.name]
    where = f'<span class="where">paper: {escape(step.paper)}</span>' if step.paper else ""
    yield f'<article id="{step.name}"><h3><a href="#{step.name}">{escape(step.title)}</a>{where}</h3>'
    if exhibit.banner:
        yield f'<p class="banner">{_text(exhibit.banner)}</p>'
    yield f"<p>{_text(exhibit.sentence)}</p>"
    for figure, drawing in zip(exhibit.figures, content.drawings[step.name], strict=True):
        yield f"<figure>{inline_svg(drawing, figure.name, figure.caption)}"
        yield f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
    if exhibit.table is not None:
        shown = table_html(exhibit.table)
        yield f"<details><summary>The figures as a table</summary>{shown}</details>" if exhibit.folded else shown
    for name, more in exhibit.more:
        title = f"{_MORE.get(name, name)} ({count(len(more.rows), 'row')})"
        yield f"<details><summary>{escape(title)}</summary>{table_html(more)}</details>"
    yield from (f'<p class="note">{_text(note)}</p>' for note in exhibit.notes)
    if content.beside:
        yield from _published(step)
    yield "</article>"


def _published(step: Step) -> Iterable[str]:
    for kind, numbers in (("table", step.tables), ("figure", step.figures)):
        for number in numbers:
            printed = published()[kind, number]
            if printed.table.rows:
                said = f"Published: {kind} {number}, {printed.title}"
                yield f"<details><summary>{escape(said)}</summary>{table_html(printed.table)}</details>"


def table_html(table: Table) -> str:
    """A table; a long one scrolls in a box."""
    classes = ["" if column.is_text else ' class="n"' for column in table.columns]
    heads = "".join(
        f"<th{kind}>{escape(column.header)}</th>" for kind, column in zip(classes, table.columns, strict=True)
    )
    rows = []
    for number, row in enumerate(table.cells()):
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(classes, row, strict=True))
        rows.append(f'<tr class="strong">{cells}</tr>' if number in table.strong else f"<tr>{cells}</tr>")
    box = "scroll tall" if len(rows) > _LONG else "scroll"
    return f'<div class="{box}"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def inline_svg(drawing: str, name: str, caption: str) -> str:
    """A drawing as part of the page: its ids its own, its colours the page's."""
    start = drawing.index("<svg")
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[start:], flags=re.S)
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', drawing)
    for variable, colour in PALETTE.items():
        drawing = drawing.replace(colour, f"var(--{variable})")
    drawing = re.sub(r"\n\s*", "\n", drawing)
    return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(caption, quote=True)}"', 1).strip()


def _browser(content: Content) -> Iterable[str]:
    if content.browser is None:
        return
    yield '<section id="browser"><h2>The problems</h2>'
    kept = "and how its text ends" if content.texts is not None else "(its texts are left out unless asked for)"
    yield f"<p>Every problem with its rollouts as lanes. Click one to see where each was stopped {kept}.</p>"
    hint = "search: id, model, benchmark, outcome, answer"
    yield f'<div class="tools"><input id="search" type="search" placeholder="{hint}" aria-label="Search problems">'
    yield '<label>sort by <select id="order">'
    orders = {"won": "who won", "saved": "attention saved", "hard": "hardest first", "pool": "order of the pool"}
    yield "".join(f'<option value="{value}">{name}</option>' for value, name in orders.items())
    yield '</select></label><span id="found"></span></div><div class="scroll tall"><table id="problems"><thead><tr>'
    heads = ("problem", "model, benchmark", "right")
    yield "".join(f"<th>{head}</th>" for head in heads) + '<th class="n">pass@1</th><th class="n">attention saved</th>'
    yield '</tr></thead><tbody></tbody></table></div><div id="problem" hidden></div>'
    yield f'<script type="application/json" id="data">{embedded(content.browser)}</script>'
    if content.texts is not None:
        yield f'<script type="application/json" id="texts">{embedded(content.texts)}</script>'
    yield "</section>"


def _absent(content: Content) -> Iterable[str]:
    if not content.absent:
        return
    titles = {step.name: step for steps in content.sections.values() for step in steps}
    yield '<section id="absent"><h2>What is not here, and why</h2><dl class="absent">'
    for name, reason in content.absent.items():
        title = titles[name].title if name in titles else name
        yield f"<dt>{escape(title)}</dt><dd>{_text(reason)}</dd>"
    yield "</dl></section>"


def _text(text: str) -> str:
    """Text as HTML, with true minus signs before numbers."""
    return escape(_NEGATIVE.sub(MINUS, text), quote=False)


def embedded(value: object) -> str:
    """JSON that cannot end its script element, whatever strings it holds."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
