"""Whatever a name holds, it is shown as plain text and changes nothing around it."""

import html
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfgate.report.escape import ascii_text, code, escaped, label, printable

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)  # surrogates too
NASTY = st.text(st.sampled_from(list("@#|`*_~[]<>()\\&\"'!:/.-+=$w \n\r\t\x00\x1b\u202e\u200ba1é漢😀")), max_size=40)


def shown(markdown: str) -> str:
    """The characters that a reader sees of escaped text."""
    return html.unescape(re.sub("</?span>", "", markdown)).replace("\u200b", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, text (with brackets)", "plain, text (with brackets)"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\r\tc", "a b  c"),
        ("\u202eabc", r"\u202eabc"),
        ("a\u200bb", r"a\u200bb"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("µs ± 漢字 😀", "µs ± 漢字 😀"),
    ],
)
def test_printable__spells_out_what_cannot_be_seen(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(ANY_TEXT)
def test_printable__leaves_one_encodable_line_and_nothing_invisible(text: str) -> None:
    result = printable(text)
    assert result.encode("utf-8").decode() == result
    assert len(result.splitlines()) <= 1
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in result)
    assert printable(result) == result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.034 µs ± 0.1 · 34 °C …", "2.034 us +- 0.1 - 34 deg C ..."),
        ("μ", "?"),
        ("café", "cafe"),
        ("漢", "?"),
    ],
)
def test_ascii_text__spells_known_signs(text: str, expected: str) -> None:
    assert ascii_text(text) == expected


@given(ANY_TEXT)
def test_ascii_text__is_ascii(text: str) -> None:
    assert ascii_text(text).isascii()


@given(st.one_of(ANY_TEXT, NASTY))
def test_escaped__shows_the_text_itself(text: str) -> None:
    assert shown(escaped(text)) == " ".join(printable(text).split())


@given(NASTY)
def test_escaped__leaves_nothing_that_means_something(text: str) -> None:
    markdown = escaped(text)
    without = re.sub(r"&#\d+;|<span>\$</span>", "\u2063", markdown)  # what the escapes stand for is no markup
    assert not re.search(r"[<>|`*_~\[\]\\&\"'$\n]", without)
    assert not re.search(r"[@#][A-Za-z0-9]", without)
    assert not re.search(r"(https?|ftp)://|www\.", without, re.IGNORECASE)
    assert not re.match(r"\s|[-+=>]|#+(\s|$)|\d+[.)](\s|$)", without)


@settings(max_examples=60)
@given(NASTY)
@pytest.mark.parametrize(
    ("before", "opening", "after", "closing"),
    [
        ("", "<p>", "", "</p>"),
        ("- ", "<li>", "", "</li>"),
        ("### ", "<h3>", "", "</h3>"),
        ("x\n", "x\n", "", "</p>"),
        ("| a | b |\n|---|---|\n| ", "<td>", " | z |", "</td>\n<td>z</td>"),
        ("<sub>", "<sub>", "</sub>", "</sub>"),
    ],
)
def test_escaped__renders_as_the_text_in_every_place(
    before: str, opening: str, after: str, closing: str, text: str
) -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(before + escaped(text) + after)
    inside = rendered[rendered.index(opening) + len(opening) : rendered.rindex(closing)] if escaped(text) else ""
    assert shown(inside.strip()) == shown(escaped(text))
    assert not re.search(r"<(?!/?span>)", inside)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a|b", "a&#124;b"),
        ("<b>&amp;", "&#60;b&#62;&#38;amp;"),
        ("`x` *y* _z_ ~w~", "&#96;x&#96; &#42;y&#42; &#95;z&#95; &#126;w&#126;"),
        ("@octocat", "@&#8203;octocat"),
        ("org/repo#12 GH-7", "org/repo#&#8203;12 GH-&#8203;7"),
        ("https://a.example/x", "https:&#8203;//a.example/x"),
        ("_http://a.example", "&#95;http:&#8203;//a.example"),  # a link begins in the middle of a word too
        ("www.a.example", "www&#8203;.a.example"),
        ("me@mail.example", "me@&#8203;mail.example"),
        ("[a](b)", "&#91;a&#93;(b)"),
        (":tada: :+1: :100:", ":&#8203;tada: :&#8203;+1: :&#8203;100:"),
        ("2026-11-29T21:40:00Z", "2026-11-29T21:40:00Z"),
        ("costs $5$", "costs <span>$</span>5<span>$</span>"),
        ("- item", "&#45; item"),
        ("+3.40 %", "&#43;3.40 %"),
        ("===", "&#61;=="),
        ("1. item", "1&#46; item"),
        ("12) item", "12&#41; item"),
        ("1.98 GHz", "1.98 GHz"),
        ("# heading", "#&#8203; heading"),
        ("\n\n    code\n", "code"),
    ],
)
def test_escaped__writes(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_code__is_a_code_span_where_that_is_safe() -> None:
    assert code("gemm.bf16[n=4096,k=1]") == "`gemm.bf16[n=4096,k=1]`"


@pytest.mark.parametrize("text", ["a`b", "a|b", "a\nb", " a", "a ", "", "@me", "#1", "a  b", "a<b"])
def test_code__is_escaped_where_a_code_span_could_end(text: str) -> None:
    assert code(text) == escaped(text)


@given(NASTY)
def test_label__cannot_leave_its_quotes(text: str) -> None:
    assert not set(label(text)) & set('"\n\\;#[]{}<>`')


def test_label__keeps_what_names_a_case() -> None:
    assert label("gemm.bf16[n=4096]") == "gemm.bf16 n=4096"
