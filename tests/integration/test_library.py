"""perfgate as a library: the page about it is true, its names are stable, it needs no command line."""

import doctest
import inspect
from pathlib import Path

import pytest

from perfgate import library
from perfgate.core.verdict import CheckVerdict
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from tests.factories import H200, make_baseline, make_run, make_session, normal_medians

ROOT = Path(__file__).parents[2]
COPY = "bandwidth.copy[bytes=4GiB]"


@pytest.mark.slow
def test_page__its_examples_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(
        str(ROOT / "docs" / "library.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.attempted > 10
    assert found.failed == 0


def test_names__that_are_exported_exist_and_have_a_description() -> None:
    for name in library.__all__:
        assert inspect.getdoc(getattr(library, name)), name


def test_names__are_these_and_changing_them_breaks_somebody() -> None:
    assert {name: list(inspect.signature(getattr(library, name)).parameters) for name in (
        "measure", "judge", "history", "render", "read", "write"
    )} == {
        "measure": ["device", "suites", "cases", "launches", "seed", "inject", "wait", "listener"],
        "judge": ["run", "baseline", "policy", "cases"],
        "history": ["places", "policy", "cases"],
        "render": ["report", "form", "run"],
        "read": ["path"],
        "write": ["path", "document"],
    }  # fmt: skip


@pytest.mark.parametrize("form", library.FORMS)
def test_render__has_every_form(form: str) -> None:
    run = make_run({COPY: normal_medians(0, 6)})
    report = library.judge(run, make_baseline(make_session({COPY: 2e-3})))
    assert COPY in library.render(report, form).replace("<wbr>", "")


def test_render__refuses_a_form_that_it_lacks() -> None:
    run = make_run({COPY: [2e-3] * 6})
    with pytest.raises(ConfigurationError, match="no form 'pdf'"):
        library.render(library.judge(run, make_baseline()), "pdf")


def test_judge__finds_a_slowdown_and_fails_closed_on_a_case_that_is_missing() -> None:
    baseline = make_baseline(make_session({COPY: 2e-3, "gemm.fp32[n=4096]": 3e-3}))
    slower = make_run({COPY: normal_medians(0, 6, median_s=2.1e-3)})
    assert library.judge(slower, baseline, cases=["bandwidth.*"]).verdict is CheckVerdict.REGRESSED
    same = make_run({COPY: normal_medians(0, 6)})
    assert library.judge(same, baseline).verdict is CheckVerdict.INVALID
    assert library.judge(same, baseline, cases=["bandwidth.*"]).verdict is CheckVerdict.PASSED


def test_judge__without_a_baseline_of_the_gpu_says_what_differs(tmp_path: Path) -> None:
    from dataclasses import replace

    library.write(tmp_path / "other.json", make_baseline(gpu=replace(H200, name="NVIDIA L4")))
    with pytest.raises(BaselineError, match="NVIDIA L4"):
        library.judge(make_run({COPY: [2e-3] * 6}), tmp_path)


def test_read_and_write__every_kind_of_document(tmp_path: Path) -> None:
    run = make_run({COPY: [2e-3] * 6})
    baseline = make_baseline()
    for name, document in {"run.json.gz": run, "baseline.json": baseline}.items():
        library.write(tmp_path / name, document)
        assert library.read(tmp_path / name) == document
    report = library.judge(run, baseline)
    library.write(tmp_path / "report.json", report)
    assert library.read(tmp_path / "report.json") == report
    with pytest.raises(DocumentError):
        library.read(tmp_path / "none.json")


def test_history__of_files(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        run = make_run({COPY: [2e-3] * 6}, created_utc=f"2026-12-0{day}T00:00:00Z")
        library.write(tmp_path / f"{day}.json", run)
    (chip,) = library.history(tmp_path)
    assert len(chip.sessions) == 3
