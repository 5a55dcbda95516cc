"""A run without its samples: every case of a launch as the one statistic that judging takes from it."""

import statistics
from dataclasses import replace

from perfgate.core.case import Unit
from perfgate.core.run import Block, CaseLaunch, Run
from perfgate.core.summary import launch_statistic


def condensed(run: Run) -> Run:
    """Return a run that is judged as ``run`` is, at a small part of its size.

    Each case of a launch has one block of one time, its median. Where a case is judged in cycles the block's clock is
    the one by which the launch's cycles follow from that time.
    """
    return replace(
        run,
        launches=tuple(
            replace(
                launch,
                cases={case_id: _condensed(case, run.cases[case_id].unit) for case_id, case in launch.cases.items()},
            )
            for launch in run.launches
        ),
    )


def _condensed(case: CaseLaunch, unit: Unit) -> CaseLaunch:
    median_s = launch_statistic(case, Unit.SECONDS)
    if median_s is None:
        return replace(case, blocks=tuple(replace(one, times_s=one.times_s[:1]) for one in case.blocks[:1]))
    cycles = launch_statistic(case, Unit.CYCLES)
    clocks = [one.sm_clock_hz for one in case.valid_blocks if one.sm_clock_hz is not None]
    clock_hz = statistics.median(clocks) if clocks else None
    block = Block(
        sequence=case.valid_blocks[0].sequence,
        started_s=case.valid_blocks[0].started_s,
        times_s=(median_s,),
        executions_per_sample=case.valid_blocks[0].executions_per_sample,
        sm_clock_hz=cycles / median_s if unit is Unit.CYCLES and cycles is not None else clock_hz,
    )
    # What is shown of a GPU beside its times is read from the run itself.
    return replace(
        case,
        blocks=(block,),
        warm_up_s=None,
        energy_j=None,
        memory_clock_hz=None,
        temperature_c=None,
        power_w=None,
        clock_events_s={reason: lost_s for reason, lost_s in case.clock_events_s.items() if lost_s},
        verification_error=None,
    )
