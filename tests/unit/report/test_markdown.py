"""The comment: verdict first, everything from files as plain text, never above its size."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from perfgate.core.caveat import Caveat
from perfgate.core.report import Cause, Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report.markdown import COMMENT_LIMIT_BYTES, OPEN_ROWS, SHED_ORDER, render_markdown
from tests.golden.reports import (
    REGRESSED_GEMM,
    REPORTS,
    UNCHANGED,
    hostile,
    hundred_cases,
    make_report,
    no_baseline,
    not_comparable,
    passed,
    recorded_and_injected,
    regressed,
    suspected,
)


def rendered(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def many_regressed(count: int, **changes: object) -> Report:
    cases = tuple(
        replace(REGRESSED_GEMM, id=f"gemm.bf16[n={index}]", **changes)  # type: ignore[arg-type]
        for index in range(count)
    )
    return make_report(cases, CheckVerdict.REGRESSED, f"{count} cases are slower.", exit_code=1)


@pytest.mark.parametrize("situation", REPORTS)
def test_render_markdown__begins_with_the_verdict(situation: str) -> None:
    report = REPORTS[situation]()
    assert render_markdown(report).startswith("### perfgate: ")
    assert report.verdict.value.split("-")[0] in render_markdown(report).splitlines()[0].replace("no comp", "not comp")


def test_render_markdown__orders_verdict_who_acts_what_moved_and_the_rest() -> None:
    text = render_markdown(regressed(), run_url="https://ci.example/run/1")
    order = [
        "### perfgate",
        "**Who acts:**",
        "**Next:**",
        "**regressed**",
        "<br>improved",
        "| differs",
        "Where each case sits",
    ]
    order += ["Roofline chart", "All 8 cases", "Environment", "Policy", "How to reproduce", "<sub>"]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert text.endswith('<a href="https://ci.example/run/1">run</a></sub>\n')


def test_render_markdown__folds_everything_but_the_verdict_of_a_pass() -> None:
    text = render_markdown(passed())
    open_part = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert "|" not in open_part
    assert "Who acts" not in text
    assert "Where each case sits" not in open_part


@pytest.mark.parametrize("report", [no_baseline(), not_comparable()])
def test_render_markdown__has_no_table_of_moved_cases_where_nothing_was_compared(report: Report) -> None:
    open_part = re.sub(r"<details>.*?</details>", "", render_markdown(report), flags=re.DOTALL)
    assert "bandwidth.read" not in open_part
    assert "**Next:** Record one" in open_part


def test_render_markdown__says_recorded_and_injected_in_the_headline_and_a_warning() -> None:
    lines = render_markdown(recorded_and_injected()).splitlines()
    assert lines[0].endswith("· RECORDED · INJECTED")
    assert lines[2] == "> [!WARNING]"
    assert lines[3].startswith("> **RECORDED**: no GPU was measured")
    assert lines[5].startswith("> **INJECTED**: a rehearsal")


def test_render_markdown__shows_notices_right_below_the_verdict() -> None:
    text = render_markdown(regressed(), notices=("This pull request changes the baseline @all.",))
    assert "**This pull request changes the baseline @&#8203;all.**" in text.split("**Who acts:**")[0]


def test_render_markdown__folds_a_long_roofline_table() -> None:
    text = render_markdown(hundred_cases())
    assert "<summary>Where each case sits</summary>" in text
    few = replace(hundred_cases(), cases=hundred_cases().cases[-5:])
    assert len(few.cases) < OPEN_ROWS
    assert "**Where each case sits.**" in render_markdown(few)


def test_render_markdown__leaves_out_what_is_unknown() -> None:
    bare = replace(
        suspected(),
        roofs=None,
        next_step="",
        summary="",
        baseline=None,
        cases=(replace(REGRESSED_GEMM, roofline=None),),
    )
    bare = replace(bare, gpu=replace(bare.gpu, board_part_number=None), environment=type(bare.environment)())
    text = render_markdown(bare)
    assert text.startswith("### perfgate: suspected on NVIDIA H200\n")
    for absent in ("Where each case sits", "**Next:**", "Measured roofs", "At commit", "head ", "| environment |"):
        assert absent not in text
    assert "judged against none" in text


def test_render_markdown__names_roofs_only_where_they_are_known() -> None:
    text = render_markdown(replace(regressed(), roofs=None))
    assert "**Where each case sits.**\n" in text


def test_render_markdown__reproduces_what_failed_and_quotes_it() -> None:
    text = render_markdown(recorded_and_injected())
    assert (
        "perfgate check --device recorded --case 'gemm.bf16[n=4096]' --inject 'gemm.*=+3%' --inject launch.gap=hang"
        in text
    )
    assert "```sh\nperfgate check\n```" in render_markdown(passed())


@pytest.mark.parametrize(
    "url", [None, "javascript:alert(1)", 'https://a.example/"onclick="x', "https://a.example/<b>", "https://a b", "/x"]
)
def test_render_markdown__links_only_to_plain_addresses(url: str | None) -> None:
    assert "<a " not in render_markdown(passed(), run_url=url)


def test_render_markdown__hostile_text_makes_no_element_of_its_own() -> None:
    page = rendered(render_markdown(hostile()))
    known = {"h3", "blockquote", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "br", "code", "pre", "ul"}
    known |= {"li", "details", "summary", "sub", "em"}
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= known
    assert page.count("<details>") == page.count("</details>")
    assert "\x1b" not in page
    outside_code = re.sub(r"<code.*?</code>", "", page, flags=re.DOTALL)
    assert not re.search(r"@octocat|#1\b|https?://|www\.", outside_code.replace("\u200b", "\x00"))


def test_render_markdown__tables_keep_their_columns_with_hostile_cells() -> None:
    page = rendered(render_markdown(hostile()))
    for table in re.findall(r"<table>(.*?)</table>", page, flags=re.DOTALL):
        columns = {row.count("<td") + row.count("<th") for row in re.findall(r"<tr>(.*?)</tr>", table, flags=re.DOTALL)}
        columns.discard(0)
        assert len(columns) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(200, 20_000))
@pytest.mark.parametrize("situation", ["regressed", "hostile-names", "hundred-cases", "recorded-injected"])
def test_render_markdown__never_exceeds_its_limit_and_keeps_the_verdict(situation: str, limit_bytes: int) -> None:
    report = REPORTS[situation]()
    text = render_markdown(report, limit_bytes=limit_bytes)
    assert len(text.encode()) <= limit_bytes
    assert text.startswith("### perfgate: regressed")


def test_render_markdown__sheds_sections_in_the_stated_order() -> None:
    report, previous = regressed(), -1
    whole = len(render_markdown(report).encode())
    for limit_bytes in range(whole, 700, -25):
        text = render_markdown(report, limit_bytes=limit_bytes)
        note = re.search(r"_Left out to keep this short: (.*)\._", text)
        dropped = note[1].split(", ") if note else []
        # This report has none of these.
        present = [name for name in SHED_ORDER if name not in ("caveats", "stored baseline", "notices")]
        assert dropped == present[: len(dropped)]
        assert len(dropped) >= previous
        previous = len(dropped)
        assert "gemm.bf16[n=4096]" in text
    assert previous == len(present)


def test_render_markdown__counts_bytes_not_characters() -> None:
    doubts = tuple(Caveat(code="x", message="😀" * 500) for _ in range(40))
    text = render_markdown(replace(regressed(), caveats=doubts))
    assert len(text) < len(text.encode()) <= COMMENT_LIMIT_BYTES
    assert "Left out" in text


def test_render_markdown__a_long_report_still_fits_a_comment() -> None:
    report = many_regressed(3000, causes=(Cause(code="x", message="because " * 40, who="author"),))
    text = render_markdown(report)
    assert COMMENT_LIMIT_BYTES / 4 < len(text.encode()) <= COMMENT_LIMIT_BYTES
    shown = text.count("**regressed**")
    assert 10 < shown < 3000
    assert f"{3000 - shown} failing cases" in text


def test_render_markdown__fits_a_job_summary() -> None:
    doubts = tuple(Caveat(code="x", message="x" * 500) for _ in range(2100))  # more than 1 MiB
    text = render_markdown(replace(regressed(), caveats=doubts), limit_bytes=900_000)
    assert len(text.encode()) <= 900_000
    assert "Left out" in text


def test_render_markdown__one_endless_text_does_not_push_out_the_rest() -> None:
    endless = "x" * 300_000
    report = replace(
        regressed(), summary=endless, next_step=endless, cases=(replace(REGRESSED_GEMM, id=endless, reason=endless),)
    )
    text = render_markdown(report)
    assert len(text.encode()) <= COMMENT_LIMIT_BYTES
    assert "**regressed**" in text
    assert "Left out" not in text


def test_render_markdown__at_the_smallest_limit_is_the_headline() -> None:
    assert render_markdown(many_regressed(3), limit_bytes=200) == "### perfgate: regressed on NVIDIA H200\n"
    long_name = replace(many_regressed(3), gpu=replace(regressed().gpu, name="<" * 99), device_kind="recorded")
    assert render_markdown(long_name, limit_bytes=200) == "### perfgate: regressed · RECORDED\n"


def test_render_markdown__shows_accepted_slowdowns_as_what_they_are() -> None:
    text = render_markdown(REPORTS["accepted"]())
    assert text.startswith("### perfgate: regressed on NVIDIA H200, accepted")
    assert "**regressed, accepted**" in text
    assert "accepted: up to 5\u00a0%: FP32 accumulation is worth it" in text


def test_render_markdown__lists_doubts_below_the_table_of_what_moved() -> None:
    doubtful = replace(REGRESSED_GEMM, caveats=(Caveat(code="x", message="The SM clock fell.", remedy="Look."),))
    text = render_markdown(make_report((doubtful,), CheckVerdict.REGRESSED, "", exit_code=1))
    assert "\n\n- `gemm.bf16[n=4096]`: The SM clock fell. Look.\n\n" in text


def test_render_markdown__leaves_out_columns_that_are_empty() -> None:
    improved = replace(UNCHANGED[0], verdict=CaseVerdict.IMPROVED)
    text = render_markdown(make_report((improved,), CheckVerdict.PASSED, ""))
    assert "| case | baseline | now | change | margin |\n|---|---:|---:|---:|---:|\n" in text


def test_render_markdown__emphasises_no_change_of_quiet_cases() -> None:
    quiet = render_markdown(make_report(UNCHANGED, CheckVerdict.PASSED, ""))
    assert "**+" not in quiet
    improved = replace(UNCHANGED[0], verdict=CaseVerdict.IMPROVED)
    assert "**+0.04\u00a0%**" in render_markdown(make_report((improved,), CheckVerdict.PASSED, ""))
