"""Nsight Compute as a program: where it is, how it is called, what its table says.

Clocks stay as they are (``--clock-control none``); caches are emptied before every kernel, ncu's default.
"""

import contextlib
import csv
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.counters import Counters
from perfgate.errors import ConfigurationError, DeviceError

# The kernel of launch.cu: one goes before every case, so that rows of the table find their case.
MARK = "launch_empty"

_READ, _WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
_DURATION = "gpu__time_duration.sum"
_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"

# FLOP of one count, by pipe. Vector pipes: threads that executed an instruction, as ncu's roofline section counts.
# Tensor pipes: operations, a multiply and an add being two. FP16 on vector units is left out: its instructions
# hold one or two operations each, and no counter tells them apart.
_OPERATION = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
_FLOP: Mapping[str, Mapping[str, int]] = {
    "fp32": {_OPERATION.format("fadd"): 1, _OPERATION.format("fmul"): 1, _OPERATION.format("ffma"): 2},
    "fp64": {_OPERATION.format("dadd"): 1, _OPERATION.format("dmul"): 1, _OPERATION.format("dfma"): 2},
    "fp64-tensor": {"sm__ops_path_tensor_src_fp64.sum": 1},
    "tf32-tensor": {"sm__ops_path_tensor_src_tf32_dst_fp32.sum": 1},
    "bf16-tensor": {"sm__ops_path_tensor_src_bf16_dst_fp32.sum": 1},
    "fp16-tensor": {"sm__ops_path_tensor_src_fp16_dst_fp32.sum": 1},
    "fp16-tensor-acc16": {"sm__ops_path_tensor_src_fp16_dst_fp16.sum": 1},
    "fp8-tensor": {"sm__ops_path_tensor_src_fp8.sum": 1},
    "int8-tensor": {"sm__ops_path_tensor_src_int8.sum": 1},
}
_UNITS = {"byte": 1.0, "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "s": 1.0, "second": 1.0}
_UNITS |= {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "%": 0.01, "inst": 1.0, "": 1.0}

_PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
_TAIL_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedKernel:
    """One row of ncu's table: the kernel and its counters in base units, those that were read."""

    name: str
    values: Mapping[str, float]

    def counters(self, pipe: str | None) -> Counters:
        """Return the counters, FLOP by those of a pipe.

        Raises:
            DeviceError: bytes or duration were not read.
        """
        missing = [name for name in (_READ, _WRITE, _DURATION) if name not in self.values]
        if missing:
            raise DeviceError(f"ncu read no {', '.join(missing)} of kernel {self.name}")
        flop = _FLOP.get(pipe or "", {})
        is_counted = bool(flop) and all(name in self.values for name in flop)
        return Counters(
            read_bytes=round(self.values[_READ]),
            write_bytes=round(self.values[_WRITE]),
            duration_s=self.values[_DURATION],
            work_flop=round(sum(count * self.values[name] for name, count in flop.items())) if is_counted else None,
            sm_share=self.values.get(_SM),
            dram_share=self.values.get(_DRAM),
        )


def found_ncu() -> str:
    """Return the path of ncu: on PATH, in the toolkit, or in its own folder, the newest.

    Raises:
        ConfigurationError: it is not installed.
    """
    found = shutil.which("ncu")
    if found is None:
        places = [place for pattern in _PLACES for place in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)]
        found = next((str(place) for place in places if os.access(place, os.X_OK)), None)
    if found is None:
        raise ConfigurationError(
            "--verify needs Nsight Compute, and there is no ncu on PATH",
            hint="install it (part of the CUDA toolkit: package cuda-nsight-compute), or put its folder on PATH",
        )
    return found


def counted_kernels(
    command: Sequence[str], *, pipes: Iterable[str | None], environment: Mapping[str, str], timeout_s: float
) -> tuple[CountedKernel, ...]:
    """Run a command under ncu and return the kernels that it executed while the profiler was on, in order.

    Args:
        command: starts and stops the profiler around what is to be counted.
        pipes: whose FLOP are counted.
        environment: of the command.
        timeout_s: longest run.

    Raises:
        ConfigurationError: ncu is not installed, or may not read counters; says how to allow it.
        DeviceError: it failed otherwise; holds the end of what it said.
    """
    metrics = [_READ, _WRITE, _DURATION, _SM, _DRAM, *dict.fromkeys(name for pipe in pipes for name in _of(pipe))]
    with tempfile.TemporaryDirectory(prefix="perfgate-ncu-") as folder:
        log = Path(folder) / "log"
        options = ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        options += ["--clock-control", "none", "--profile-from-start", "off", "--metrics", ",".join(metrics)]
        code, output = _ended([found_ncu(), *options, *command], {**environment, "LC_ALL": "C"}, timeout_s)
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    _raise_if_failed(code, text, output)
    return parse_kernels(text)


def _of(pipe: str | None) -> Mapping[str, int]:
    return _FLOP.get(pipe or "", {})


def _ended(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
    """Run to the end; stopped at the limit with everything that it started."""
    with subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise DeviceError(
                f"ncu did not end within {timeout_s:.0f} s", hint="choose fewer cases with --case"
            ) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def _raise_if_failed(code: int, text: str, output: str) -> None:
    said = f"{text}\n{output}"
    if "ERR_NVGPUCTRPERM" in said:
        raise ConfigurationError(
            "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM)",
            hint="run as root, give a container the capability SYS_ADMIN, or load the module nvidia with"
            " NVreg_RestrictProfilingToAdminUsers=0",
        )
    errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
    if code != 0 or errors:
        lines = errors or [line for line in said.splitlines() if line.strip()]
        raise DeviceError(
            f"ncu ended with exit code {code}:\n" + "\n".join(lines[-_TAIL_LINES:]),
            hint="is another profiler attached, or is the GPU one that ncu does not know?",
        )


def parse_kernels(text: str) -> tuple[CountedKernel, ...]:
    """Parse what ``ncu --csv --page raw`` writes: a row of names, one of units, one a kernel; ``==`` lines are talk.

    Raises:
        DeviceError: there is no table.
    """
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(rows) < 2 or "Kernel Name" not in rows[0]:
        raise DeviceError("ncu counted no kernel", hint="does the case launch its kernels in the process it runs in?")
    names, units, *kernels = rows
    place = names.index("Kernel Name")
    return tuple(
        CountedKernel(
            name=row[place],
            values={
                name: value * _UNITS[unit]
                for name, unit, cell in zip(names, units, row, strict=True)
                if "__" in name and unit in _UNITS and (value := _number(cell)) is not None
            },
        )
        for row in kernels
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:  # n/a
        return None


def grouped(kernels: Iterable[CountedKernel]) -> list[list[CountedKernel]]:
    """Return the kernels behind each mark; what comes before the first belongs to no case."""
    groups: list[list[CountedKernel]] = []
    for kernel in kernels:
        if kernel.name == MARK:
            groups.append([])
        elif groups:
            groups[-1].append(kernel)
    return groups
