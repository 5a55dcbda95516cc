"""Our medians, and the time that they take, against NVIDIA's nvbench on the GPU at hand.

    python benchmarks/nvbench_peer.py [--turns 2] [--json FILE]

Both time the same machine code on the same buffers: a case is prepared by the suite, measured by our
loop, then launched through cuda.bindings on nvbench's own stream. Every turn measures ours right before
each of three ways of nvbench, so that a drift of the machine meets both:

- ``shipped``: cold samples by nvbench's defaults (noise under 0.5 % and at least 0.5 s on the GPU);
- ``early``: cold samples until the half-width is certain to be reached, no least time (10 samples at least);
- ``batch``: one mean over a train of launches, caches not flushed.

nvbench clears the L2 cache before each cold sample by writing a buffer of its size; what that does to the
kernel that follows is measured too, by events of our own around single executions.

Needs ``cuda-bench`` and ``cuda-bindings``.
"""

import argparse
import itertools
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cuda.bench as nvbench
import numpy as np
from cuda.bench.results import BenchmarkResult
from cuda.bindings import driver

from perfgate.core.case import Case, Suite, Timing
from perfgate.core.gpu import Gpu
from perfgate.core.run import CaseLaunch
from perfgate.core.toolbox import Kernel, Toolbox, Workload
from perfgate.devices.cuda.compiler import CodeCache, found_compiler
from perfgate.devices.cuda.device import CudaDevice
from perfgate.devices.cuda.driver import driver as cuda_driver
from perfgate.devices.cuda.session import CudaSession, architecture, opened_session
from perfgate.measure.loop import CaseLoop, MeasuredCase, Settings
from perfgate.resources import cache_folder
from perfgate.suite import built_in_suite

# What both must reach: 1.96 standard errors of the samples that each returns, over their median.
HALF_WIDTH = 0.002
NORMAL_95 = 1.96
# nvbench's least number of samples; ours looks after every block, of as many.
LEAST_SAMPLES = 10
# The noise under which LEAST_SAMPLES have that half-width.
EARLY_NOISE = HALF_WIDTH * math.sqrt(LEAST_SAMPLES) / NORMAL_95
WAYS = ("shipped", "early", "batch")
# Enough clearing that the host has enqueued events and execution before it ends.
CLEARINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A median and what it took.

    Attributes:
        median_s: median of the samples.
        half_width: 1.96 standard errors over the median.
        samples: how many.
        elapsed_s: from the prepared case on, warm-up included.
    """

    median_s: float
    half_width: float
    samples: int
    elapsed_s: float


class SharedExecution:
    """One kernel with its arguments: called, it runs on our stream; ``on`` another one through cuda.bindings."""

    def __init__(self, own: Callable[[], None], function: Any, shape: tuple[int, ...], args: Sequence[Any]) -> None:
        self._own = own
        self._function = function
        self._shape = shape
        self._values = [np.array(one if isinstance(one, np.generic) else np.uint64(one.address)) for one in args]
        self._pointers = np.array([value.ctypes.data for value in self._values], dtype=np.uint64)

    def __call__(self) -> None:
        """Enqueue on our stream."""
        self._own()

    def on(self, stream: int) -> None:
        """Enqueue on a stream given by its handle."""
        *shape, shared_bytes = self._shape
        launch = driver.cuLaunchKernel
        checked(launch(self._function, *shape, shared_bytes, driver.CUstream(stream), self._pointers.ctypes.data, 0))


class SharedKernel:
    """A kernel that is loaded twice from one cubin: by the toolbox, and by cuda.bindings."""

    def __init__(self, kernel: Kernel, function: Any) -> None:
        self._kernel = kernel
        self._function = function

    def bind(self, *, grid: Any, block: Any, args: Sequence[Any], shared_bytes: int = 0) -> SharedExecution:
        """See core.toolbox.Kernel.bind."""
        own = self._kernel.bind(grid=grid, block=block, args=args, shared_bytes=shared_bytes)
        return SharedExecution(own, self._function, (*grid, *block, shared_bytes), args)


class SharedToolbox:
    """A toolbox whose kernels can also be launched by nvbench; the rest is the toolbox's own."""

    def __init__(self, toolbox: Toolbox, cache: CodeCache) -> None:
        self._toolbox = toolbox
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._toolbox, name)

    def kernel(self, source: str, function: str, *, defines: Mapping[str, int | str] | None = None) -> SharedKernel:
        """See core.toolbox.Toolbox.kernel."""
        kernel = self._toolbox.kernel(source, function, defines=defines)
        module = checked(driver.cuModuleLoadData(self._cache.cubin(source, defines or {}).code))
        return SharedKernel(kernel, checked(driver.cuModuleGetFunction(module, function.encode())))


class Comparison:
    """All cases in all ways, in one process: nvbench runs everything that was registered, once."""

    def __init__(self, gpu: Gpu) -> None:
        cache = CodeCache(cache_folder(), found_compiler(), architecture(gpu.compute_capability or ""))
        self._workloads: dict[str, Workload] = {}
        self._own: dict[str, list[MeasuredCase]] = {}
        self._elapsed_s: dict[str, list[float]] = {}
        self._cleared_s: dict[str, float] = {}
        self._l2_bytes = gpu.l2_bytes or 0
        suite = built_in_suite("default", gpu)
        timed = [case for case in suite.cases if case.timing is Timing.EVENTS]
        self.suite = Suite(
            name="shared",
            cases=tuple(replace(case, prepare=partial(self._prepared, case, cache)) for case in timed),
        )

    def _prepared(self, case: Case, cache: CodeCache, toolbox: Toolbox) -> Workload:
        shared: Any = SharedToolbox(toolbox, cache)
        self._workloads[case.id] = case.prepare(shared)
        return self._workloads[case.id]

    def run(self, session: CudaSession, turns: int, folder: Path) -> list[dict[str, Any]]:
        """Measure; return one row a case."""
        loop = CaseLoop(session, Settings(), lambda *_: None)
        for case in self.suite.cases:
            self._own[case.id] = []
            for way in WAYS:
                benchmark = nvbench.register(partial(self._state, loop, case, way))
                benchmark.set_name(_name(case, way)).add_int64_axis("turn", range(turns))
                if way != "shipped":
                    benchmark.set_criterion_param_float64("max-noise", EARLY_NOISE)
                    benchmark.set_criterion_param_float64("min-time", 0.0)
        found = folder / "nvbench.json"
        nvbench.run_all_benchmarks(["nvbench_peer", "--devices", "0", "--jsonbin", str(found), "--quiet"])
        results = BenchmarkResult.from_json(found)
        return [self._row(case, results) for case in self.suite.cases]

    def _state(self, loop: CaseLoop, case: Case, way: str, state: Any) -> None:
        """Ours, then nvbench on the buffers that ours left behind."""
        self._own[case.id].append(loop.measure(case.id, Timing.EVENTS))
        workload = self._workloads[case.id]
        if case.id not in self._cleared_s:
            self._cleared_s[case.id] = self._cleared_time_s(workload)
        workload.poison()
        checked(driver.cuCtxSynchronize())
        executions: Any = itertools.cycle(workload.executions)
        began_s = time.perf_counter()
        state.exec(lambda launch: next(executions).on(launch.get_stream().addressof()), batched=way == "batch")
        self._elapsed_s.setdefault(_name(case, way), []).append(time.perf_counter() - began_s)
        checked(driver.cuCtxSynchronize())
        if not (verification := workload.verify()).passed:
            message = f"{case.id}: wrong output on nvbench's stream: {verification.detail}"
            raise RuntimeError(message)

    def _cleared_time_s(self, workload: Workload) -> float:
        """Return the median time of single executions, each right after the L2 cache was filled with zeros."""
        cuda = cuda_driver()
        stream, buffer = cuda.Stream(), cuda.mem_alloc(self._l2_bytes)
        times_s = []
        for execution in itertools.islice(itertools.cycle(workload.executions), 2 * LEAST_SAMPLES):
            begin, end = cuda.Event(), cuda.Event()
            for _ in range(CLEARINGS):
                cuda.memset_d8_async(buffer, 0, self._l2_bytes, stream)
            begin.record(stream)
            shared: Any = execution
            shared.on(int(stream.handle))
            end.record(stream)
            end.synchronize()
            times_s.append(end.time_since(begin) * 1e-3)
        buffer.free()
        return statistics.median(times_s)

    def _row(self, case: Case, results: Any) -> dict[str, Any]:
        own_s = statistics.median(_median_s(one.launch) for one in self._own[case.id])
        own = [reached(one) for one in self._own[case.id]]
        states = {way: results[_name(case, way)].states for way in WAYS}
        cold = {
            way: [
                summary(state.samples.tolist(), elapsed_s)
                for state, elapsed_s in zip(states[way], self._elapsed_s[_name(case, way)], strict=True)
            ]
            for way in ("shipped", "early")
        }
        means_s = [state.summaries["nv/cold/time/gpu/mean"].value for state in states["shipped"]]
        batch_s = [state.summaries["nv/batch/time/gpu/mean"].value for state in states["batch"]]
        shipped_s = statistics.median(one.median_s for one in cold["shipped"])
        return {
            "case": case.id,
            "own_median_s": own_s,
            "nvbench_cold_mean_s": statistics.median(means_s),
            "nvbench_cold_median_s": shipped_s,
            "nvbench_batch_mean_s": statistics.median(batch_s),
            "own_cleared_median_s": self._cleared_s[case.id],
            "own": [asdict(one) for one in own],
            "shipped": [asdict(one) for one in cold["shipped"]],
            "early": [asdict(one) for one in cold["early"]],
        }


def checked(result: tuple[Any, ...]) -> Any:
    """Return what a call of cuda.bindings returns beside its status; one value bare."""
    status, *values = result
    if int(status) != 0:
        message = f"CUDA driver: {status!r}"
        raise RuntimeError(message)
    return values[0] if values else None


def summary(times_s: list[float], elapsed_s: float) -> Reached:
    """Return median and half-width of samples."""
    median_s = statistics.median(times_s)
    half_width = NORMAL_95 * statistics.stdev(times_s) / math.sqrt(len(times_s)) / median_s
    return Reached(median_s=median_s, half_width=half_width, samples=len(times_s), elapsed_s=elapsed_s)


def reached(measured: MeasuredCase) -> Reached:
    """Return our state after the first block that reaches the half-width, or after the last one."""
    blocks = measured.launch.valid_blocks
    times_s: list[float] = []
    found: Reached | None = None
    for block in blocks:
        times_s.extend(block.times_s)
        ended_s = block.started_s + sum(block.times_s) * measured.plan.executions_per_sample
        found = summary(times_s, (measured.launch.warm_up_s or 0.0) + ended_s - blocks[0].started_s)
        if found.half_width <= HALF_WIDTH:
            break
    assert found is not None
    return found


def _median_s(launch: CaseLaunch) -> float:
    return statistics.median(statistics.median(block.times_s) for block in launch.valid_blocks)


def _name(case: Case, way: str) -> str:
    return f"{case.id.split('[')[0]} {way}"


def rendered_medians(rows: list[dict[str, Any]]) -> list[str]:
    """Render our median, and the others relative to it."""
    lines = [
        "| case | ours, µs | nvbench cold median | cold mean | batch mean | ours, L2 cleared |",
        "|---|---|---|---|---|---|",
    ]
    names = ("nvbench_cold_median_s", "nvbench_cold_mean_s", "nvbench_batch_mean_s", "own_cleared_median_s")
    for row in rows:
        ratios = (row[name] / row["own_median_s"] - 1 for name in names)
        shown = " | ".join(f"{ratio:+.2%}" for ratio in ratios)
        lines.append(f"| {row['case']} | {row['own_median_s'] * 1e6:.2f} | {shown} |")
    return lines


def rendered_times(rows: list[dict[str, Any]]) -> list[str]:
    """Render what it took to reach the half-width, as seconds (samples, half-width, farthest from the long median)."""
    lines = ["| case | ours | nvbench shipped | nvbench early |", "|---|---|---|---|"]
    for row in rows:
        cells = []
        for way, long_s in (
            ("own", "own_median_s"),
            ("shipped", "nvbench_cold_median_s"),
            ("early", "nvbench_cold_median_s"),
        ):
            elapsed_s, samples, half_width = (
                statistics.median(one[key] for one in row[way]) for key in ("elapsed_s", "samples", "half_width")
            )
            off = max(abs(one["median_s"] / row[long_s] - 1) for one in row[way])
            cells.append(f"{elapsed_s:.3f} ({samples:.0f}, {half_width:.3%}, {off:.2%})")
        lines.append(f"| {row['case']} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Compare on the first visible GPU and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2, help="times that every case is measured in every way")
    parser.add_argument("--json", type=Path, help="also write what was found there")
    arguments = parser.parse_args()
    device = CudaDevice("")
    comparison = Comparison(device.gpu)
    with (
        tempfile.TemporaryDirectory() as folder,
        device.lock(wait=True),
        opened_session("", lambda _: comparison.suite, cache_folder()) as session,
    ):
        session.self_test()
        rows = comparison.run(session, arguments.turns, Path(folder))
    print("\n".join((*rendered_medians(rows), "", *rendered_times(rows))))
    if arguments.json:
        found = {
            "measured_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "nvbench": version("cuda-bench"),
            "gpu": asdict(device.gpu),
            "environment": asdict(device.environment),
            "cases": rows,
        }
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
