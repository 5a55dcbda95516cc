"""How a case is sampled: the parameters that must be equal for two runs to be comparable."""

from dataclasses import dataclass

# Version of the way times are taken; runs of another method are not comparable.
METHOD = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlan:
    """The sampling plan of one case.

    Attributes:
        executions_per_sample: back-to-back executions in one timed interval.
        samples_per_block: consecutive samples of a block; its statistic is their median.
        blocks: blocks in one launch; the launch's statistic is the median of theirs.
    """

    executions_per_sample: int
    samples_per_block: int
    blocks: int

    def __post_init__(self) -> None:
        for name in ("executions_per_sample", "samples_per_block", "blocks"):
            if getattr(self, name) < 1:
                message = f"plan: {name} must be at least 1"
                raise ValueError(message)
