"""Recorded H200 sessions as runs: what the judging is tried on besides simulations.

Two kinds of gzipped JSON, told apart by what a block holds: one execution to an event pair (a list of
times; cases are ``NAME@EFFECT``), or many (an object with the device clock as well).
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan
from perfgate.core.run import Block, CaseInfo, CaseLaunch, Launch, Run
from perfgate.core.summary import launch_statistics

_GIB = 2**30
# What each recorded case moved or computed (the recordings' README), and whether it is judged in cycles.
_CASES: Mapping[str, tuple[str, Work]] = {
    "copy": ("bandwidth.copy[bytes=512MiB]", Work(read_bytes=_GIB // 4, write_bytes=_GIB // 4)),
    "read": ("bandwidth.read[bytes=512MiB]", Work(read_bytes=_GIB // 2)),
    "copy1G": ("bandwidth.copy[bytes=1GiB]", Work(read_bytes=_GIB, write_bytes=_GIB)),
    "read1G": ("bandwidth.read[bytes=1GiB]", Work(read_bytes=_GIB)),
    "stride2": ("bandwidth.stride2", Work(read_bytes=_GIB // 2, write_bytes=_GIB // 4)),
    "gather": ("bandwidth.gather", Work(read_bytes=_GIB // 2, write_bytes=_GIB // 4)),
    "sgemm": ("gemm.fp32[n=4096]", Work(work_flop=2 * 4096**3, pipe="fp32")),
    "wgemm_bf16": ("gemm.bf16[n=4096]", Work(work_flop=2 * 4096**3, pipe="bf16-tensor")),
    "cublas_fp16_8192": ("gemm.fp16[n=8192]", Work(work_flop=2 * 8192**3, pipe="fp16-tensor")),
}
_IN_CYCLES = ("wgemm_bf16", "cublas_fp16_8192")
_H200 = Gpu(
    name="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    memory_bytes=150_109_880_320,
    memory_bus_bits=6016,
    memory_clock_hz=3.201e9,
    l2_bytes=62_914_560,
    ecc_enabled=True,
    integrated=False,
    pci_device_id="0x233510de",
    pci_subsystem_id="0x18be10de",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recorded session.

    Attributes:
        name: of the session.
        chip: whose it is; a name of its own where the chip was not read.
        board: board part number; None where it was not read.
        run: the session as a run, GPU-timed cases only.
        samples: by case, seconds of every sample, shape (launches, blocks, samples).
        clocks_hz: by case, SM clock of every block, shape (launches, blocks, 1); ones where it was not measured.
    """

    name: str
    chip: str
    board: str | None
    run: Run
    samples: Mapping[str, NDArray[np.float64]]
    clocks_hz: Mapping[str, NDArray[np.float64]]

    @property
    def launches(self) -> int:
        """Number of launches."""
        return len(self.run.launches)

    def statistics(self, case_id: str) -> NDArray[np.float64]:
        """Launch statistics of a case in the unit that it is judged in."""
        return np.array(launch_statistics(self.run, case_id, self.run.cases[case_id].unit))


def read_recordings(folder: Path) -> tuple[Recording, ...]:
    """Read all sessions of a folder, in the order of their names."""
    return tuple(_recording(path) for path in sorted(folder.glob("*.json.gz")))


def _recording(path: Path) -> Recording:
    document = json.loads(gzip.decompress(path.read_bytes()))
    name = path.name.removesuffix(".json.gz").removeprefix("session-")
    names = [key for key in document["launches"][0]["cases"] if key.removesuffix("@0") in _CASES]
    gpu = replace(_H200, board_part_number=document.get("board_part_number"), chip=document.get("chip"))
    infos, samples, clocks_hz = {}, {}, {}
    executions = document.get("executions_per_sample", {})
    for key in names:
        plain = key.removesuffix("@0")
        case_id, work = _CASES[plain]
        blocks = [[_times_s(block) for block in launch["cases"][key]] for launch in document["launches"]]
        samples[case_id] = np.array(blocks)
        clocks = [[[_clock_hz(block) or 1.0] for block in launch["cases"][key]] for launch in document["launches"]]
        clocks_hz[case_id] = np.array(clocks)
        has_clock = isinstance(document["launches"][0]["cases"][key][0], dict)
        infos[case_id] = CaseInfo(
            family=case_id.split(".", 1)[0],
            work=work,
            version=1,
            timing=Timing.EVENTS,
            unit=Unit.CYCLES if has_clock and plain in _IN_CYCLES else Unit.SECONDS,
            source_sha256=plain.encode().hex().ljust(64, "0")[:64],
            plan=CasePlan(
                executions_per_sample=executions.get(plain, 1),
                samples_per_block=samples[case_id].shape[2],
                blocks=samples[case_id].shape[1],
            ),
        )
    launches = tuple(
        Launch(
            index=index,
            started_utc="2026-11-29T22:00:00Z",
            cases={_CASES[key.removesuffix("@0")][0]: _case_launch(launch["cases"][key]) for key in names},
        )
        for index, launch in enumerate(document["launches"])
    )
    run = Run(
        created_utc="2026-11-29T22:00:00Z",
        perfgate_version="0",
        device_kind="recorded",
        method=1,
        suite_name="recorded",
        suite_sha256=None,
        gpu=gpu,
        environment=Environment(driver_version=document["driver"], cuda_toolkit_version=document["cuda"]),
        cases=infos,
        launches=launches,
    )
    return Recording(
        name=name,
        chip=document.get("chip") or name,
        board=gpu.board_part_number,
        run=run,
        samples=samples,
        clocks_hz=clocks_hz,
    )


def _times_s(block: Any) -> list[float]:
    times_us = block["times_us"] if isinstance(block, dict) else block
    return [time * 1e-6 for time in times_us]


def _clock_hz(block: Any) -> float | None:
    return block["sm_clock_ghz"] * 1e9 if isinstance(block, dict) and block["sm_clock_ghz"] else None


def _case_launch(blocks: list[Any]) -> CaseLaunch:
    return CaseLaunch(
        blocks=tuple(
            Block(
                sequence=index,
                started_s=0.0,
                times_s=tuple(_times_s(block)),
                executions_per_sample=1,
                sm_clock_hz=_clock_hz(block),
            )
            for index, block in enumerate(blocks)
        )
    )
