"""Programs that measure themselves: what they print, how they fail, and the device that stands behind them."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfgate.core.case import Program, Timing
from perfgate.core.device import Telemetry
from perfgate.errors import ConfigurationError, DeviceError
from perfgate.measure.loop import CaseLoop, Settings
from perfgate.measure.program import ProgramCase, ProgramSession, parse_nvbench, parse_times


def python(code: str, **changes: Any) -> Program:
    return Program(command=(sys.executable, "-c", code, *changes.pop("arguments", ())), **changes)


def test_parse_times__takes_lines_of_a_number_and_its_unit() -> None:
    output = "warming up\n12.5 us\n 13 µs \n1e-3 ms\ntime: 5 us\n0.5s\n7ns\n"
    assert parse_times(output, "x") == pytest.approx((12.5e-6, 13e-6, 1e-6, 0.5, 7e-9))


def test_parse_times__says_what_the_program_said_instead() -> None:
    with pytest.raises(DeviceError, match=r"printed no time: took 5 \| done"):
        parse_times("took 5\ndone\n", "x")


def nvbench(path: Path, *states: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"benchmarks": [{"states": list(states)}]}))
    return path


def summary(tag: str, **fields: Any) -> dict[str, Any]:
    return {"tag": tag, "data": [{"name": name, "value": value} for name, value in fields.items()]}


def test_parse_nvbench__takes_the_samples_where_they_were_kept_else_the_mean(tmp_path: Path) -> None:
    mean = summary("nv/cold/time/gpu/mean", value="1.5e-3")
    assert parse_nvbench(nvbench(tmp_path / "a.json", {"summaries": [mean]}), "x") == (1.5e-3,)
    np.array([1e-3, 2e-3], dtype="<f4").tofile(tmp_path / "times.bin")
    samples = summary("nv/json/bin:nv/cold/sample_times", filename="times.bin", size="2")
    found = parse_nvbench(nvbench(tmp_path / "b.json", {"summaries": [mean, samples]}), "x")
    assert found == pytest.approx((1e-3, 2e-3))


def test_parse_nvbench__of_several_states_or_of_something_else_is_refused(tmp_path: Path) -> None:
    state = {"summaries": [summary("nv/cold/time/gpu/mean", value="1")]}
    assert parse_nvbench(nvbench(tmp_path / "a.json", state, {**state, "is_skipped": True}), "x") == (1.0,)
    with pytest.raises(DeviceError, match="2 states"):
        parse_nvbench(nvbench(tmp_path / "b.json", state, state), "x")
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(DeviceError, match="not nvbench's JSON"):
        parse_nvbench(tmp_path / "c.json", "x")
    with pytest.raises(DeviceError, match="not nvbench's JSON: FileNotFoundError"):
        parse_nvbench(tmp_path / "missing.json", "x")


def test_program_case__runs_in_its_folder_and_gives_its_times(tmp_path: Path) -> None:
    alive: list[int] = []
    code = "import os; print(len(os.listdir('.')), 'ms'); print('2 ms')"
    case = ProgramCase("a.b", python(code, folder=str(tmp_path)), lambda: alive.append(1))
    (tmp_path / "one").touch()
    assert case.time_batch(executions=1, samples=10).intervals_s == pytest.approx((1e-3, 2e-3))
    assert alive


def test_program_case__reads_the_json_that_it_asked_for() -> None:
    document = {"benchmarks": [{"states": [{"summaries": [summary("nv/cold/time/gpu/mean", value="0.25")]}]}]}
    code = f"import sys; open(sys.argv[1], 'w').write({json.dumps(document)!r})"
    case = ProgramCase("a.b", python(code, arguments=("{json}",)), lambda: None)
    assert case.time_batch(executions=1, samples=1).intervals_s == (0.25,)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('no GPU'); sys.exit(3)", "exited with code 3: no GPU"),
        ("import os; os.abort()", "died of SIGABRT"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
    ],
)
def test_program_case__that_fails_is_named(code: str, message: str) -> None:
    with pytest.raises(DeviceError, match=f"a.b: .*{message}"):
        ProgramCase("a.b", python(code, timeout_s=0.5 if "sleep" in code else 60.0), lambda: None).time_batch(
            executions=1, samples=1
        )


def test_program_case__that_does_not_exist_says_so() -> None:
    case = ProgramCase("a.b", Program(command=("./no-such-program",)), lambda: None)
    with pytest.raises(ConfigurationError, match="cannot be started"):
        case.time_batch(executions=1, samples=1)


class Device:
    """A device whose own case is told from a program."""

    @contextlib.contextmanager
    def open_case(self, case_id: str) -> Iterator[Any]:
        yield f"device's {case_id}"

    def self_test(self) -> None:
        pass

    def telemetry(self) -> Telemetry:
        return Telemetry(at_s=0.0)

    def energy_j(self) -> float | None:
        return None

    def code_sha256(self, case_id: str) -> str | None:
        return "c0de"


def session(code: str) -> ProgramSession:
    return ProgramSession(Device(), {"own.program": python(code)}, lambda case_id: None)


def test_program_session__leaves_all_other_cases_to_the_device() -> None:
    one = session("print('1 ms')")
    with one.open_case("bandwidth.copy") as case:
        assert case == "device's bandwidth.copy"
    assert (one.code_sha256("bandwidth.copy"), one.code_sha256("own.program")) == ("c0de", None)


def test_case_loop__takes_one_block_of_a_program_without_warming_it_up(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('.'); print('2 ms'); print('3 ms'); print('4 ms')"
    measured = CaseLoop(session(code), Settings(), lambda case_id, phase: None).measure("own.program", Timing.PROGRAM)
    assert count.read_text() == "."
    assert [block.times_s for block in measured.launch.blocks] == [pytest.approx((2e-3, 3e-3, 4e-3))]
    assert measured.plan.executions_per_sample == 1


def test_case_loop__a_program_cannot_be_slowed_down() -> None:
    with pytest.raises(ConfigurationError, match="cannot be slowed down"):
        CaseLoop(session("print('2 ms')"), Settings(), lambda case_id, phase: None).measure(
            "own.program", Timing.PROGRAM, change=0.05
        )
