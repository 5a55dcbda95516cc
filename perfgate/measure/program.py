"""Cases that are programs of their own: run, timed by themselves, their answers parsed. Stands before any device."""

import contextlib
import json
import math
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from perfgate.core.case import Program
from perfgate.core.device import LaunchSession, OpenCase, SampleBatch, Telemetry
from perfgate.core.toolbox import Verification
from perfgate.errors import ConfigurationError, DeviceError

_LINE = re.compile(r"\s*(?P<number>[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?)\s*(?P<unit>ns|us|µs|ms|s)\s*", re.IGNORECASE)
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
# nvbench's names of a state's results (its docs/json_output.md): all samples where they were kept, else the mean.
_NVBENCH_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_NVBENCH_MEAN = "nv/cold/time/gpu/mean"
_JSON = "{json}"
_TAIL_LINES = 6
_LOOK_S = 1.0


class ProgramSession:
    """A launch in which some cases are programs; all others are the device's.

    Args:
        session: the device's.
        programs: by case.
        alive: told every second while a program runs, so that a supervisor sees that the launch lives.
    """

    def __init__(self, session: LaunchSession, programs: Mapping[str, Program], alive: Callable[[str], None]) -> None:
        self._session = session
        self._programs = programs
        self._alive = alive

    def open_case(self, case_id: str) -> AbstractContextManager[OpenCase]:
        """See core.device.LaunchSession."""
        if case_id not in self._programs:
            return self._session.open_case(case_id)
        return contextlib.nullcontext(ProgramCase(case_id, self._programs[case_id], lambda: self._alive(case_id)))

    def self_test(self) -> float | None:
        """See core.device.LaunchSession."""
        return self._session.self_test()

    def telemetry(self) -> Telemetry:
        """See core.device.LaunchSession."""
        return self._session.telemetry()

    def energy_j(self) -> float | None:
        """See core.device.LaunchSession."""
        return self._session.energy_j()

    def code_sha256(self, case_id: str) -> str | None:
        """See core.device.LaunchSession."""
        return None if case_id in self._programs else self._session.code_sha256(case_id)


class ProgramCase:
    """A program as a case that is open: one run is one block."""

    def __init__(self, case_id: str, program: Program, alive: Callable[[], None]) -> None:
        self._id = case_id
        self._program = program
        self._alive = alive
        self._began_s = time.monotonic()

    @property
    def sets(self) -> int:
        """One: what it rotates over is its own business."""
        return 1

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        """Run the program once; its times, as many as it gives, are the batch.

        Raises:
            DeviceError: it cannot be started, fails, hangs or gives no time.
        """
        del samples
        started_s = time.monotonic() - self._began_s
        with tempfile.TemporaryDirectory(prefix="perfgate-program-", ignore_cleanup_errors=True) as folder:
            place = Path(folder) / "result.json"
            output = self._output(place)
            times_s = parse_nvbench(place, self._id) if self._writes_json else parse_times(output, self._id)
        return SampleBatch(intervals_s=tuple(one * executions for one in times_s), started_s=started_s)

    def poison(self) -> None:
        """Nothing: its outputs are its own."""

    def verify(self) -> Verification:
        """Nothing is known of its outputs but that it did not fail."""
        return Verification(passed=True, error=0.0, tolerance=0.0, detail="a program: it ended without an error")

    @property
    def _writes_json(self) -> bool:
        return any(_JSON in one for one in self._program.command)

    def _output(self, place: Path) -> str:
        command = [one.replace(_JSON, str(place)) for one in self._program.command]
        name = Path(command[0]).name  # where it lies is nobody's business in a document
        folder = self._program.folder or None
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise ConfigurationError(
                    f"{self._id}: {name} cannot be started: {error.strerror}",
                    hint="is it built? name it relative to the suite's folder, or build it with --build",
                ) from error
            code = self._waited(process, name)
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        if code != 0:
            how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
            raise DeviceError(f"{self._id}: {name} {how}: {_tail(text)}")
        return text

    def _waited(self, process: "subprocess.Popen[bytes]", name: str) -> int:
        end_s = time.monotonic() + self._program.timeout_s
        try:
            while True:
                self._alive()
                try:
                    return process.wait(timeout=_LOOK_S)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > end_s:
                        raise DeviceError(
                            f"{self._id}: {name} did not end within {self._program.timeout_s:g} s",
                            hint="pass a longer timeout_s, or measure less",
                        ) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def parse_times(output: str, about: str) -> tuple[float, ...]:
    """Parse the times [s] that a program printed: lines that hold a number and its unit alone.

    Raises:
        DeviceError: there is none.
    """
    found = [match for line in output.splitlines() if (match := _LINE.fullmatch(line)) is not None]
    times_s = tuple(float(one["number"]) * _UNITS_S[one["unit"].lower()] for one in found)
    if not times_s:
        raise DeviceError(
            f"{about}: the program printed no time: {_tail(output)}",
            hint="print one time a line with its unit, e.g. 12.5 us, or write nvbench's JSON into {json}",
        )
    return times_s


def parse_nvbench(path: Path, about: str) -> tuple[float, ...]:
    """Parse the times [s] of the one state of nvbench's JSON: all samples where ``--jsonbin`` kept them, else the mean.

    Raises:
        DeviceError: it is no such document, or has another number of states.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        states = [state for benchmark in document["benchmarks"] for state in benchmark["states"]]
        measured = [state for state in states if not state.get("is_skipped")]
        if len(measured) != 1:
            raise DeviceError(
                f"{about}: nvbench wrote {len(measured)} states", hint="choose one with -b NAME -a AXIS=VALUE -d 0"
            )
        summaries = {one["tag"]: one for one in measured[0]["summaries"]}
        if _NVBENCH_SAMPLES in summaries:
            return _samples(path, _fields(summaries[_NVBENCH_SAMPLES]))
        return (float(_fields(summaries[_NVBENCH_MEAN])["value"]),)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(f"{about}: this is not nvbench's JSON: {type(error).__name__} {error}") from error


def _samples(path: Path, fields: Mapping[str, Any]) -> tuple[float, ...]:
    import numpy as np

    name = Path(fields["filename"])
    values = np.fromfile(name if name.is_absolute() else path.parent / name, dtype="<f4").astype(float)
    return tuple(one for one in values.tolist() if math.isfinite(one))


def _fields(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in summary["data"]}


def _tail(text: str) -> str:
    lines = text.strip().splitlines()[-_TAIL_LINES:]
    return " | ".join(lines) or "it printed nothing"
