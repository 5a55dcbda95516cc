"""Pages are laid out for the width that is asked for, whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from perfgate.report.layout import MINIMUM_WIDTH, Column, Line, Page, broken

COLUMNS = (Column(heading="case"), Column(heading="time", align="right"), Column(heading="note"))


def page(width: int = 80, *, color: bool = False, unicode: bool = True) -> Page:
    return Page(width=width, color=color, unicode=unicode)


@given(st.text(max_size=300), st.integers(MINIMUM_WIDTH, 200))
def test_line__stays_within_the_width(text: str, width: int) -> None:
    one = page(width)
    one.line(text)
    assert all(cell_len(line) <= width for line in one.text.splitlines())


@given(st.text(max_size=120), st.text("0123 µs%±", max_size=12), st.integers(MINIMUM_WIDTH, 200))
def test_table__stays_within_the_width(case_id: str, value: str, width: int) -> None:
    one = page(width)
    one.table(COLUMNS[:2], [Line(cells=(case_id, value), notes=((case_id, ""),))])
    assert all(cell_len(line) <= width for line in one.text.splitlines())


@pytest.mark.parametrize("before", range(60, 90))
def test_line__never_breaks_before_a_percent_sign(before: int) -> None:
    one = page(80)
    one.line("x" * before + " 12.5 % more")
    assert not any(line.startswith("%") for line in one.text.splitlines())
    assert "12.5 %" in one.text


def test_page__is_laid_out_for_the_least_width_where_the_terminal_is_narrower() -> None:
    one = page(10)
    one.line("word " * 20)
    assert max(map(len, one.text.splitlines())) > 40


def test_page__without_colour_holds_no_escape() -> None:
    one = page()
    one.line("text", "bold red")
    assert one.text == "text\n"


def test_page__with_colour_styles() -> None:
    one = page(color=True)
    one.line("text", "bold red")
    assert one.text == "\x1b[1;31mtext\x1b[0m\n"


@pytest.mark.parametrize("markup", ["[red]x[/red]", ":smile:", "\x1b[31mx", "[link=http://a.example]x[/link]"])
def test_page__takes_text_for_text(markup: str) -> None:
    one = page(color=True)
    one.line(markup)
    assert one.text == markup.replace("\x1b", r"\x1b") + "\n"


def test_page__does_not_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "20", "NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    plain, coloured = page(), page(color=True)
    for one in (plain, coloured):
        one.line("some words that are longer than twenty columns", "red")
    assert plain.text == "some words that are longer than twenty columns\n"
    assert "\x1b[31m" in coloured.text


def test_page__in_ascii_spells_signs() -> None:
    one = page(unicode=False)
    one.line("2 µs ± 1 · 漢")
    assert one.text == "2 us +- 1 - ?\n"


def test_table__aligns_columns_and_leaves_out_empty_ones() -> None:
    one = page()
    one.table(COLUMNS, [Line(cells=("a", "1 s", "")), Line(cells=("bb", "10 s", ""))])
    assert one.text.splitlines() == ["  case          time", "  a              1 s", "  bb            10 s"]


def test_table__counts_cells_of_wide_characters() -> None:
    one = page()
    one.table(COLUMNS[:2], [Line(cells=("漢字漢字漢字漢字", "1 s")), Line(cells=("a" * 16, "1 s"))])
    assert len({cell_len(line) for line in one.text.splitlines()[1:]}) == 1


def test_table__puts_headings_and_notes_between_rows() -> None:
    one = page()
    one.table(
        COLUMNS[:2],
        [Line(heading="group", style="bold"), Line(cells=("a", "1 s"), notes=(("why " * 30, "dim"),))],
    )
    lines = one.text.splitlines()
    assert lines[1] == "group"
    assert lines[3].startswith("    why")
    assert lines[4].startswith("      why")


def test_table__breaks_a_long_id_where_a_reader_would() -> None:
    one = page(MINIMUM_WIDTH)
    long_id = "operators.layernorm[rows=16384,columns=4096,dtype=bf16,affine=yes]"
    one.table(COLUMNS[:2], [Line(cells=(long_id, "1.000 ms"))])
    lines = one.text.splitlines()
    assert lines[1].startswith("  operators.layernorm[rows=16384,columns=4096,")
    assert lines[1].endswith("1.000 ms")
    assert lines[2].strip() == "dtype=bf16,affine=yes]"


def test_labelled__puts_a_name_beside_its_texts() -> None:
    one = page()
    one.labelled("Next", ["first " * 20, "second"], label_width=6)
    lines = one.text.splitlines()
    assert lines[0].startswith("Next    first")
    assert lines[1].startswith("        first")
    assert lines[2] == "        second"


def test_labelled__says_nothing_without_texts() -> None:
    one = page()
    one.labelled("Next", [], label_width=6)
    assert one.text == ""


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("a.b[x=1]", 20, ["a.b[x=1]"]),
        ("a.b[x=1]", 7, ["a.b", "[x=1]"]),
        ("a.b[x=1,y=2]", 8, ["a.b[x=1,", "y=2]"]),
        ("", 5, [""]),
        (",,", 5, [",,"]),
        ("abcdefgh", 4, ["ab", "cd", "ef", "gh"]),
    ],
)
def test_broken__breaks_before_brackets_and_after_commas(text: str, width: int, expected: list[str]) -> None:
    assert broken(text, width) == expected


@given(st.text(max_size=80), st.integers(3, 40))
def test_broken__loses_nothing_and_fits(text: str, width: int) -> None:
    lines = broken(text, width)
    assert "".join(lines) == text
    assert all(cell_len(line) <= width for line in lines)
