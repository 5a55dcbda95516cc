"""What a test wants to know of an HTML page, read as a browser's parser would: elements, texts, balance."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from perfgate.core.report import Report
from perfgate.core.run import Run
from tests.factories import make_run, normal_medians

_VOID = {"meta", "input", "wbr", "br", "hr", "link", "img"}


@dataclass(slots=True)
class Element:
    """One element: its tag, its attributes, and the text within it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(slots=True)
class Page:
    """The elements of a page in order, and what was wrong with its nesting."""

    elements: list[Element] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [one for one in self.elements if one.tag == tag and wanted.items() <= one.attributes.items()]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.page.elements.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1].tag != tag:
            self.page.faults.append(f"</{tag}> closes {self.open[-1].tag if self.open else 'nothing'}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read_page(text: str) -> Page:
    """Read a page; what stays open is a fault too."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.page.faults += [f"<{one.tag}> stays open" for one in reader.open]
    return reader.page


def run_of(report: Report, launches: int = 6) -> Run:
    """A run with every case of a report that was measured."""
    medians_s = {
        case.id: normal_medians(index, launches, median_s=case.candidate_s)
        for index, case in enumerate(report.cases)
        if case.candidate_s
    }
    return make_run(medians_s, absent={"gemm.fp8[n=4096]": "needs compute capability 8.9"})


def table_rows(page: Page) -> list[dict[str, str]]:
    """The attributes of the rows of the table of cases."""
    return [one.attributes for one in page.all("tr") if "data-verdict" in one.attributes]
