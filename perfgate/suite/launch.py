"""What it costs to start a kernel that does nothing: several things, never mixed (docs/measurement.md)."""

from perfgate.core.case import Case, Timing, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload

VERSION = 1
_SOURCE = "launch.cu"

# Orders of magnitude on an H200, for planning: gap 1.3 µs, graph node 0.5 µs, submit 7 µs,
# launch and synchronize 11 µs, an event pair around nothing 1.7 to 2.9 µs.
_CASES = (
    ("gap", Timing.GAP, True, 1.5e-6),
    ("graph_node", Timing.GRAPH_NODE, True, 0.5e-6),
    ("graph", Timing.GRAPH, False, 12e-6),
    ("submit", Timing.SUBMIT, False, 8e-6),
    ("roundtrip", Timing.ROUNDTRIP, False, 12e-6),
    ("event_floor", Timing.EVENT_FLOOR, False, 2e-6),
)


def launch_cases(_gpu: Gpu) -> tuple[Case, ...]:
    """Return the launch cases. Host-timed ones vary 10-50 % between sessions on one machine: reported, not gated."""
    return tuple(
        Case(
            id=f"launch.{name}",
            version=VERSION,
            work=Work(),
            prepare=_prepared_empty,
            sources=(_SOURCE,),
            timing=timing,
            gated=gated,
            predicted_s=predicted_s,
        )
        for name, timing, gated, predicted_s in _CASES
    )


def _prepared_empty(toolbox: Toolbox) -> Workload:
    execution = toolbox.kernel(_SOURCE, "launch_empty").bind(grid=(1, 1, 1), block=(1, 1, 1), args=())
    return Workload(executions=(execution,), poison=lambda: None, verify=_verified_nothing)


def _verified_nothing() -> Verification:
    return Verification(passed=True, error=0.0, tolerance=0.0, detail="an empty kernel has no output")
