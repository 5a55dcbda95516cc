"""Tables of docs/figures/latency.md and peak.md from a run of the suite `full`.

    perfgate run --suite full --case 'latency.*' --case 'peak.*' RUN.json
    python benchmarks/limits.py RUN.json

Steps in SM cycles and in time; peaks as a share of SMs x rate x clock, the clock as measured with them.
"""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

from perfgate.core.case import Unit
from perfgate.core.latency import steps_of
from perfgate.core.peaks import EXPONENTIAL_PIPE, attribute_peak_per_s, exponentials_per_s, pipe_unit
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics, median_or_none, relative_spread
from perfgate.core.units import percent_text, rate_text, time_text
from perfgate.storage.documents import read_run
from perfgate.storage.gpu_table import read_gpu_table


def latency_lines(run: Run) -> Iterator[str]:
    """Rows: case, cycles and time of a step, standard deviation of the launches."""
    yield "| case | cycles a step | time a step | spread of launches |"
    yield "|---|---|---|---|"
    for case_id, info in run.cases.items():
        if info.family != "latency":
            continue
        times_s, cycles = (launch_statistics(run, case_id, unit) for unit in Unit)
        steps = steps_of(case_id)
        of_step = f"{statistics.median(cycles) / steps:.1f}" if cycles else ""
        spread = relative_spread(cycles if info.unit is Unit.CYCLES else times_s)
        shown = "" if spread is None else percent_text(spread, decimals=2)
        yield f"| `{case_id}` | {of_step} | {time_text(statistics.median(times_s) / steps)} | {shown} |"


def peak_lines(run: Run) -> Iterator[str]:
    """Rows: case, rate, clock, share of SMs x rate x clock, standard deviation of the launches' cycles."""
    table = read_gpu_table()
    yield "| case | rate | SM clock | of SMs x rate x clock | spread of launches |"
    yield "|---|---|---|---|---|"
    for case_id, info in run.cases.items():
        if info.family != "peak":
            continue
        cases = [launch.cases[case_id] for launch in run.launches if case_id in launch.cases]
        clock_hz = median_or_none(block.sm_clock_hz for case in cases for block in case.valid_blocks) or 0.0
        cycles = launch_statistics(run, case_id, Unit.CYCLES)
        rate_per_s = info.work.work_flop / (statistics.median(cycles) / clock_hz)
        if info.work.pipe == EXPONENTIAL_PIPE:
            limit_per_s = (exponentials_per_s(run.gpu) or 0.0) * clock_hz / (run.gpu.sm_clock_max_hz or 1.0)
        else:
            limit_per_s = attribute_peak_per_s(run.gpu, table, info.work.pipe or "", clock_hz) or 0.0
        spread = percent_text(relative_spread(cycles) or 0.0, decimals=2)
        rate, share = rate_text(rate_per_s, pipe_unit(info.work.pipe or "")), f"{rate_per_s / limit_per_s:.4f}"
        yield f"| `{case_id}` | {rate} | {clock_hz / 1e6:.0f} MHz | {share} | {spread} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run document")
    run = read_run(parser.parse_args().run)
    print(f"{run.gpu.name}, board {run.gpu.board_part_number}, {len(run.launches)} launches\n")
    print("\n".join(latency_lines(run)), end="\n\n")
    print("\n".join(peak_lines(run)))


if __name__ == "__main__":
    main()
