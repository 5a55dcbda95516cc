"""What a launch of the suite beside this file spends its time on, and what measuring adds to an execution.

    python overhead.py FILE.json

Each callable is timed by perfgate and by a bare loop over the same callable between two events, in turn.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import suite

from perfgate.api import Execution, Unit, callable_case
from perfgate.core.summary import launch_statistic
from perfgate.errors import PerfgateError
from perfgate.measure.journal import PhaseEntered
from perfgate.workflow.benching import Bench, opened_bench

ROUNDS = 5
SAMPLE_S = 0.05
SAMPLES = 8


class Timeline:
    """A journal that keeps when each phase was entered."""

    def __init__(self):
        self.entries = []

    def write(self, entry):
        what = f"{entry.case_id} {entry.phase}" if isinstance(entry, PhaseEntered) else type(entry).__name__
        self.entries.append((time.monotonic(), what))

    def durations(self, end_s):
        ends = [at_s for at_s, _ in self.entries[1:]] + [end_s]
        found = {}
        for (at_s, what), next_s in zip(self.entries, ends, strict=True):
            found[what] = round(found.get(what, 0.0) + next_s - at_s, 3)
        return found


def bare_s(run, stream, rough_s):
    """Return the median time [s] of an execution in a bare loop between two events."""
    import pycuda.driver as cuda

    count = max(1, round(SAMPLE_S / rough_s))
    begin, end = cuda.Event(), cuda.Event()
    found = []
    for _ in range(SAMPLES):
        begin.record(stream)
        for _ in range(count):
            run()
        end.record(stream)
        end.synchronize()
        found.append(end.time_since(begin) * 1e-3 / count)
    return statistics.median(found)


def overhead(bench, name, setup):
    """Return the times of a callable by perfgate and by the bare loop, in turn."""
    made = setup(bench.stream)
    execution = next(made)
    case = callable_case(name, lambda _: Execution(execution.run))
    pairs = []
    for _ in range(ROUNDS):
        measured_s = launch_statistic(bench.measured(case).launch, Unit.SECONDS)
        pairs.append((measured_s, bare_s(execution.run, bench.stream.native, measured_s)))
    next(made, None)
    return {
        "perfgate_s": statistics.median(one for one, _ in pairs),
        "bare_s": statistics.median(other for _, other in pairs),
        "ratios": [one / other - 1 for one, other in pairs],
    }


def main():
    place = Path(sys.argv[1])
    began_s = time.monotonic()
    found = {"imports_s": {}, "overhead": {}}
    with opened_bench("cuda:") as session:
        found["open_s"] = time.monotonic() - began_s
        for name in ("torch", "triton", "cupy"):
            began_s = time.monotonic()
            __import__(name)
            found["imports_s"][name] = round(time.monotonic() - began_s, 3)
        timeline = Timeline()
        bench = Bench(session=session, journal=timeline)
        for case in suite.suite(session.toolbox.gpu):
            try:
                bench.measured(case)
            except PerfgateError as error:
                found.setdefault("failed", {})[case.id] = error.message
            timeline.write(None)
        found["phases_s"] = timeline.durations(time.monotonic())
        place.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        for setup in (suite.copied, suite.doubled, suite.multiplied, suite.softmax):
            name = f"overhead.{setup.__name__}"
            try:
                found["overhead"][name] = overhead(bench, name, setup)
            except PerfgateError as error:
                found["overhead"][name] = error.message
            place.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
