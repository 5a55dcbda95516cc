"""Documents survive the way to the disk and back, and nothing else comes in or goes out."""

import dataclasses
import getpass
import gzip
import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from perfgate.core.baseline import Baseline
from perfgate.core.policy import Policy
from perfgate.core.report import CaseResult, Estimate, Report
from perfgate.core.run import Block, Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import DocumentError, ExitCode
from perfgate.storage.documents import (
    parse_baseline,
    parse_report,
    parse_run,
    read_baseline,
    read_document,
    read_report,
    read_run,
    render_baseline_json,
    render_report_json,
    render_run_json,
    write_baseline,
    write_report,
    write_run,
)
from tests.factories import ENVIRONMENT, H200, make_baseline, make_run, make_session
from tests.golden.reports import REPORTS as SITUATIONS
from tests.unit.storage.strategies import BASELINES, REPORTS, RUNS

COPY = "bandwidth.copy[bytes=4GiB]"
READERS = (read_run, read_baseline, read_report)
PARSERS: tuple[Callable[[bytes | str, str], object], ...] = (parse_run, parse_baseline, parse_report)
THOROUGH = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def make_report(**changes: Any) -> Report:
    fields: dict[str, Any] = {
        "created_utc": "2026-11-30T12:00:00Z",
        "perfgate_version": "0.1.0",
        "verdict": CheckVerdict.PASSED,
        "exit_code": 0,
        "summary": "1 case, none slower",
        "gpu": H200,
        "environment": ENVIRONMENT,
        "device_kind": "cuda",
        "policy": Policy(margins={"z.*": 0.01, "a.*": 0.02}),
        "cases": (CaseResult(id=COPY, family="bandwidth", verdict=CaseVerdict.UNCHANGED),),
    }
    return Report(**(fields | changes))


def run_json(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(render_run_json(make_run({COPY: [2e-3, 2.1e-3]})))
    return document | changes


# --- round trips ---------------------------------------------------------------------------------


@THOROUGH
@given(RUNS)
def test_run__survives_writing_and_is_written_the_same_again(run: Run) -> None:
    text = render_run_json(run)
    assert parse_run(text, "run") == run
    assert render_run_json(parse_run(text, "run")) == text


@THOROUGH
@given(BASELINES)
def test_baseline__survives_writing_and_is_written_the_same_again(baseline: Baseline) -> None:
    text = render_baseline_json(baseline)
    assert parse_baseline(text, "baseline") == baseline
    assert render_baseline_json(parse_baseline(text, "baseline")) == text


@THOROUGH
@given(REPORTS)
def test_report__survives_writing_and_is_written_the_same_again(report: Report) -> None:
    text = render_report_json(report)
    assert parse_report(text, "report") == report
    assert render_report_json(parse_report(text, "report")) == text


def test_write__gives_files_that_are_read_back(tmp_path: Path) -> None:
    run, baseline, report = make_run({COPY: [2e-3]}), make_baseline(), make_report()
    write_run(tmp_path / "run.json", run)
    write_run(tmp_path / "run.json.gz", run)
    write_baseline(tmp_path / "baseline.json", baseline)
    write_report(tmp_path / "report.json", report)
    assert read_run(tmp_path / "run.json") == run
    assert read_run(tmp_path / "run.json.gz") == run
    assert read_baseline(tmp_path / "baseline.json") == baseline
    assert read_report(tmp_path / "report.json") == report
    assert (tmp_path / "report.json").read_text() == render_report_json(report)


def test_write_run__gives_equal_bytes_for_equal_runs_when_gzipped(tmp_path: Path) -> None:
    for name in ("one.json.gz", "other.json.gz"):
        write_run(tmp_path / name, make_run({COPY: [2e-3]}))
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "other.json.gz").read_bytes()


@pytest.mark.skipif(sys.gettrace() is not None, reason="tracing slows Python code and not the parser in C")
def test_read_run__is_fast_enough_for_a_full_session(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    run = make_run({f"bandwidth.copy[bytes={index}]": [2e-3] * 12 for index in range(20)})
    launches = tuple(
        dataclasses.replace(
            launch,
            cases={
                case_id: dataclasses.replace(
                    case,
                    blocks=tuple(
                        dataclasses.replace(block, times_s=tuple((2e-3 + 1e-6 * generator.random(120)).tolist()))
                        for block in case.blocks
                    ),
                )
                for case_id, case in launch.cases.items()
            },
        )
        for launch in run.launches
    )
    run = dataclasses.replace(run, launches=launches)
    write_run(tmp_path / "run.json", run)
    read_run(tmp_path / "run.json")  # loads jsonschema and the schema
    text = (tmp_path / "run.json").read_text()
    plain_s = min(_cpu_s(lambda: json.loads(text)) for _ in range(5))
    read_s = min(_cpu_s(lambda: read_run(tmp_path / "run.json")) for _ in range(5))
    # 0.05 s and 0.25 s on the machine of record; with each sample checked by the schema it is 1.1 s.
    assert read_s < 10 * plain_s


def _cpu_s(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.mark.parametrize("name", sorted(SITUATIONS))
def test_report__of_every_situation_is_written_unless_its_names_are_hostile(name: str) -> None:
    report = SITUATIONS[name]()
    if name == "hostile-names":
        with pytest.raises(DocumentError, match="does not have the form"):
            render_report_json(report)
    else:
        assert parse_report(render_report_json(report), name) == report


# --- canonical text ------------------------------------------------------------------------------


def test_render_baseline__puts_a_case_on_a_line_with_six_digits() -> None:
    baseline = make_baseline(make_session({COPY: 2.034123456789e-3, "gemm.bf16": 1.1e-3}))
    lines = [line for line in render_baseline_json(baseline).splitlines() if "launch_medians_s" in line]
    assert [line.split('"')[1] for line in lines] == [COPY, "gemm.bf16"]
    assert '"launch_medians_s": [0.00203412, 0.00203412,' in lines[0]
    assert "2.0341234" not in lines[0]


def test_render__ends_with_one_line_feed() -> None:
    for text in (render_run_json(make_run({COPY: [1e-3]})), render_baseline_json(make_baseline())):
        assert text.endswith("}\n")
        assert not text.endswith("\n\n")


def test_render_run__does_not_depend_on_the_order_of_cases() -> None:
    forward = make_run({"bandwidth.a": [1e-3], "bandwidth.b": [2e-3]})
    backward = make_run({"bandwidth.b": [2e-3], "bandwidth.a": [1e-3]})
    assert render_run_json(forward) == render_run_json(backward)


def test_render_report__keeps_the_order_of_margins_since_the_last_match_wins() -> None:
    assert list(parse_report(render_report_json(make_report()), "report").policy.margins) == ["z.*", "a.*"]


# --- what must not come in -----------------------------------------------------------------------

BAD_BYTES = {
    "empty": (b"", "is not JSON"),
    "truncated": (render_run_json(make_run({COPY: [2e-3]})).encode()[:-200], "is not JSON"),
    "not JSON": (b"hello", "is not JSON"),
    "binary": (bytes(range(256)), "is not UTF-8"),
    "UTF-16": ('{"format": 1}'.encode("utf-16"), "is not UTF-8"),
    "byte order mark": (b'\xef\xbb\xbf{"format": "perfgate.run/1"}', "BOM"),
    "NaN": (b'{"format": NaN}', "holds NaN"),
    "Infinity": (b'{"format": "perfgate.run/1", "x": -Infinity}', "holds -Infinity"),
    "overflowing number": (b'{"x": [1e999]}', "not a finite number"),
    "overflowing number among samples": (b'{"x": [1.0, 1e999, 2.0]}', "not a finite number"),
    "integer beyond 64 bits": (b'{"x": 9223372036854775808}', "beyond 64 bits"),
    "integer of a million digits": (b'{"x": ' + b"9" * 10**6 + b"}", "beyond 64 bits"),
    "duplicate keys": (b'{"format": "perfgate.run/1", "format": "perfgate.run/1"}', "twice"),
    "deep nesting": (b"[" * 100 + b"]" * 100, "deeper"),
    "very deep nesting": (b"[" * 4 * 10**5 + b"]" * 4 * 10**5, "deeper"),
    "more arrays than a document has": (b"[" + b"[]," * 10**6 + b"[]]", "more than 500000 arrays and objects"),
    "more items than a document has": (b"[" + b"0," * 5 * 10**6 + b"0]", "more than 4000000 items"),
    "more names than an object has": (json.dumps(dict.fromkeys(map(str, range(10_001)), 0)).encode(), "10001 members"),
    "a long array that is not of samples": (json.dumps([0] * 10_001).encode(), "10001 members"),
    "zip": (b"PK\x03\x04" + bytes(60), "is not JSON"),
    "gzip in gzip": (gzip.compress(gzip.compress(b"0" * 10**8)), "is not UTF-8"),
    "very deep objects": (b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "deeper"),
    "lone surrogate in a text": (rb'{"format": "\ud800"}', "surrogate"),
    "lone surrogate in a name": (rb'{"\udfff": 1}', "cannot be printed"),
    "control character in a text": (rb'{"format": "\u001b[2J"}', "control"),
    "control character in a name": (rb'{"a\u0007": 1}', "cannot be printed"),
    "text direction mark in a name": (rb'{"a\u202eb": 1}', "cannot be printed"),
    "very long name": (b'{"' + b"a" * 1000 + b'": 1}', "longer than"),
    "array": (b"[]", "has no field 'format'"),
    "null": (b"null", "has no field 'format'"),
    "no format": (b"{}", "has no field 'format'"),
    "format of another program": (b'{"format": "somebody/1"}', "none of perfgate's"),
    "format that is no text": (b'{"format": 1}', "none of perfgate's"),
    "format of version 0": (b'{"format": "perfgate.run/0"}', "none of perfgate's"),
    "damaged gzip": (gzip.compress(b"{}" * 1000)[:-12], "damaged gzip"),
    "gzip header alone": (b"\x1f\x8b\x08", "damaged gzip"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_parse__refuses(name: str) -> None:
    data, expected = BAD_BYTES[name]
    for parse in PARSERS:
        with pytest.raises(DocumentError) as caught:
            parse(data, "upload.json")
        assert expected in str(caught.value)
        assert str(caught.value).startswith("upload.json")
        assert caught.value.exit_code is ExitCode.DOCUMENT


def test_parse__refuses_what_is_larger_than_a_document_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'{"format": "perfgate.baseline/1"}' + b" " * 17 * 10**6
    for text in (data, data.decode(), gzip.compress(data, 1)):
        with pytest.raises(DocumentError, match="larger than 16000000 bytes"):
            parse_baseline(text, "b.json")


@pytest.mark.parametrize("content", [b"0" * 10**8, gzip.compress(b"0" * 10**8, 1)], ids=["plain", "gzip bomb"])
def test_read__refuses_a_hundred_megabytes_at_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(content)
    spent_s = []
    for _ in range(3):
        began_s = time.process_time()
        with pytest.raises(DocumentError, match="larger than 16000000 bytes"):
            read_baseline(path)
        spent_s.append(time.process_time() - began_s)
    assert min(spent_s) < 0.2


def test_read__names_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for read in READERS:
        with pytest.raises(DocumentError, match="does not exist"):
            read(tmp_path / "absent.json")
        with pytest.raises(DocumentError, match="is a directory"):
            read(tmp_path)
        with pytest.raises(DocumentError, match="cannot be read"):
            read(Path("a\0b"))
        with pytest.raises(DocumentError, match="cannot be read"):
            read(tmp_path / ("x" * 5000))


def test_read__stops_at_its_bound_however_long_the_file_is() -> None:
    with pytest.raises(DocumentError, match="larger than"):
        read_baseline(Path("/dev/zero"))


def test_read_run__says_what_a_document_is_when_it_is_not_a_run(tmp_path: Path) -> None:
    write_baseline(tmp_path / "baseline.json", make_baseline())
    with pytest.raises(DocumentError, match=r"is a baseline \(perfgate\.baseline/1\), but a run is wanted") as caught:
        read_run(tmp_path / "baseline.json")
    assert caught.value.pointer == "/format"


def test_read_document__reads_whatever_kind_it_is(tmp_path: Path) -> None:
    run, baseline, report = make_run({COPY: [2e-3]}), make_baseline(), make_report()
    write_run(tmp_path / "run.json", run)
    write_baseline(tmp_path / "baseline.json", baseline)
    write_report(tmp_path / "report.json", report)
    assert read_document(tmp_path / "run.json") == run
    assert read_document(tmp_path / "baseline.json") == baseline
    assert read_document(tmp_path / "report.json") == report
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DocumentError, match="no document of perfgate"):
        read_document(tmp_path / "other.json")


INVALID = {
    "unknown field": (run_json(color="red"), "", "unknown field 'color'"),
    "missing field": ({key: value for key, value in run_json().items() if key != "gpu"}, "", "'gpu' is missing"),
    "wrong type": (run_json(method="1"), "/method", "expected integer, found '1'"),
    "number for a truth": (run_json(cases={COPY: run_json()["cases"][COPY] | {"gated": 1}}), None, "expected boolean"),
    "negative time": (run_json(), "/launches/0/cases/bandwidth.copy[bytes=4GiB]/blocks/0", "finite and positive"),
    "local time": (run_json(created_utc="2026-11-30T12:00:00+01:00"), "/created_utc", "does not have the form"),
    "case id": (run_json(cases={"Copy": run_json()["cases"][COPY]}), "/cases", "does not have the form"),
    "unknown case": (run_json(cases={}), "/launches/0/cases/bandwidth.copy[bytes=4GiB]", "do not describe it"),
    "other family": (
        run_json(cases={COPY: run_json()["cases"][COPY] | {"family": "gemm"}}),
        "/cases/bandwidth.copy[bytes=4GiB]/family",
        "not the family",
    ),
    "repeated launch": (run_json(launches=[run_json()["launches"][0]] * 2), "/launches/1/index", "does not come after"),
}
INVALID["negative time"][0]["launches"][0]["cases"][COPY]["blocks"][0]["times_s"][3] = -1.0


@pytest.mark.parametrize("name", INVALID)
def test_parse_run__names_the_place_of(name: str) -> None:
    document, pointer, expected = INVALID[name]
    with pytest.raises(DocumentError) as caught:
        parse_run(json.dumps(document), "run.json")
    assert expected in caught.value.reason
    if pointer is not None:
        assert caught.value.pointer == pointer


@pytest.mark.parametrize("time", [0, -1e-3, "fast", None, True, [1e-3]])
def test_parse_run__refuses_a_sample_that_is_no_time(time: object) -> None:
    document = run_json()
    document["launches"][1]["cases"][COPY]["blocks"][2]["times_s"][0] = time
    with pytest.raises(DocumentError) as caught:
        parse_run(json.dumps(document), "run.json")
    assert caught.value.pointer.startswith(f"/launches/1/cases/{COPY}/blocks/2")


def test_parse_baseline__refuses_cycles_that_do_not_pair_with_times() -> None:
    document = json.loads(render_baseline_json(make_baseline()))
    document["sessions"][0]["cases"][COPY]["launch_cycles"] = [1.0]
    with pytest.raises(DocumentError, match="has 1 values where launch_medians_s has 12"):
        parse_baseline(json.dumps(document), "b.json")


@pytest.mark.parametrize("field", ["chip", "power_limit_w"])
def test_render_baseline__refuses_a_gpu_that_is_one_chip(field: str) -> None:
    gpu = dataclasses.replace(make_baseline().gpu, **{field: getattr(H200, field)})
    with pytest.raises(DocumentError, match="belongs to a session"):
        render_baseline_json(dataclasses.replace(make_baseline(), gpu=gpu))


def test_parse_baseline__refuses_one_without_sessions() -> None:
    document = json.loads(render_baseline_json(make_baseline())) | {"sessions": []}
    with pytest.raises(DocumentError, match="/sessions"):
        parse_baseline(json.dumps(document), "b.json")


def test_parse_report__refuses_a_reversed_interval_and_a_case_judged_twice() -> None:
    case = CaseResult(id=COPY, family="bandwidth", verdict=CaseVerdict.UNCHANGED)
    reversed_case = dataclasses.replace(case, change=Estimate(value=0.0, low=0.1, high=-0.1))
    with pytest.raises(DocumentError, match="is reversed"):
        render_report_json(make_report(cases=(reversed_case,)))
    with pytest.raises(DocumentError, match="2 times"):
        render_report_json(make_report(cases=(case, case)))


def test_parse__shortens_what_it_quotes_from_a_foreign_document() -> None:
    secret = "password " * 1000
    with pytest.raises(DocumentError) as caught:
        parse_run(json.dumps(run_json(method=secret)), "run.json")
    assert len(str(caught.value)) < 300


def test_parse__follows_no_reference_of_a_document() -> None:
    for name in ("$ref", "$schema", "$dynamicRef"):
        with pytest.raises(DocumentError, match=rf"unknown field '\{name}'"):
            parse_run(f'{{"format": "perfgate.run/1", "{name}": "file:///etc/passwd"}}', "run.json")


def test_parse__says_little_of_a_document_that_is_wrong_everywhere() -> None:
    document = json.loads(render_baseline_json(make_baseline()))
    case = document["sessions"][0]["cases"][COPY]
    for wrong in ([-1.5] * 900_000, [1.5] * 900_000, ["x"] * 9_000):
        case["launch_medians_s"] = wrong
        began_s = time.perf_counter()
        with pytest.raises(DocumentError, match="launch_medians_s") as caught:
            parse_baseline(json.dumps(document), "baseline.json")
        assert len(str(caught.value)) < 300
        assert time.perf_counter() - began_s < 10, "an error for each item was looked at"


def test_parse__keeps_extensions_that_it_does_not_know() -> None:
    document = run_json(extensions={"org.example": {"z": [1, None], "a": "b"}})
    assert parse_run(json.dumps(document), "run").extensions == {"org.example": {"z": [1, None], "a": "b"}}


# --- what must not go out ------------------------------------------------------------------------


def test_render__refuses_a_value_that_json_cannot_hold() -> None:
    case = CaseResult(id=COPY, family="bandwidth", verdict=CaseVerdict.UNCHANGED)
    for value, expected in ((float("nan"), "not a finite"), (float("inf"), "not a finite"), (np.int64(1), "int64")):
        with pytest.raises(DocumentError, match=expected) as caught:
            render_report_json(make_report(cases=(dataclasses.replace(case, baseline_s=value),)))
        assert caught.value.pointer == "/cases/0/baseline_s"


def test_write__leaves_nothing_when_the_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        write_report(tmp_path / "report.json", make_report(exit_code=-1))
    assert list(tmp_path.iterdir()) == []


PRIVATE = (
    "GPU-5a1b2c3d-0123-4567-89ab-0123456789ab",
    "MIG-5a1b2c3d-0123-4567-89ab-0123456789ab",
    "5a1b2c3d-0123-4567-89ab-0123456789ab",
    "/home/alice",
    "/Users/alice",
    "/root",
)


def test_write__withholds_uuids_and_home_folders_that_came_in_with_an_error_text(tmp_path: Path) -> None:
    words = "\n".join(f"failed on {text}/kernels/copy.cu: \x1b[31merror" for text in PRIVATE)
    run = make_run({COPY: [2e-3]})
    launch = dataclasses.replace(run.launches[0], failures={COPY: words}, failure=words)
    block = Block(sequence=9, started_s=1.0, times_s=(), executions_per_sample=1, valid=False, reason=words)
    case = dataclasses.replace(launch.cases[COPY], blocks=(*launch.cases[COPY].blocks, block))
    launch = dataclasses.replace(launch, cases={COPY: case})
    write_run(tmp_path / "run.json", dataclasses.replace(run, launches=(launch,), absent={"x.y": words}))
    write_report(tmp_path / "report.json", make_report(summary=words))
    for name in ("run.json", "report.json"):
        text = (tmp_path / name).read_text()
        assert not [private for private in PRIVATE if private in text]
        assert "alice" not in text
        assert "\\u001b" not in text
        assert "GPU-withheld/kernels/copy.cu" in text
        assert "~/kernels/copy.cu" in text


def test_write__names_neither_host_nor_user_nor_folder(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json", make_run({COPY: [2e-3]}))
    write_baseline(tmp_path / "baseline.json", make_baseline())
    write_report(tmp_path / "report.json", make_report())
    for path in tmp_path.glob("*.json"):
        text = path.read_text()
        for private in (socket.gethostname(), getpass.getuser(), str(tmp_path), str(Path.cwd())):
            assert len(private) < 4 or private not in text
        for word in ("uuid", "serial", "hostname", "user"):
            assert f'"{word}' not in text.lower()
