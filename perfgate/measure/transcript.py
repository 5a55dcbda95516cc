"""What a launch has said so far: its journal, folded."""

from dataclasses import dataclass, field
from datetime import datetime, timezone

from perfgate.core.plan import CasePlan
from perfgate.core.run import CaseLaunch
from perfgate.measure.journal import (
    CaseFailed,
    CaseMeasured,
    LaunchFailed,
    LaunchFinished,
    Message,
    Phase,
    PhaseEntered,
    Started,
)
from perfgate.shims import assert_never


@dataclass(slots=True)
class Transcript:
    """What a launch has said so far."""

    case_ids: tuple[str, ...]
    started_utc: str
    cases: dict[str, CaseLaunch] = field(default_factory=dict)
    plans: dict[str, CasePlan] = field(default_factory=dict)
    code_sha256: dict[str, str | None] = field(default_factory=dict)
    effective_changes: dict[str, float] = field(default_factory=dict)
    case_failures: dict[str, CaseFailed] = field(default_factory=dict)
    failed: LaunchFailed | None = None
    finished: LaunchFinished | None = None
    open_case: str | None = None
    phase: Phase | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def begun(cls, case_ids: tuple[str, ...], now: datetime) -> "Transcript":
        """Return the transcript of a launch that has said nothing yet."""
        return cls(case_ids, now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))

    def is_foreign(self, message: Message) -> bool:
        """Whether a message speaks of a case that this launch was not told to measure."""
        return getattr(message, "case_id", None) not in (None, *self.case_ids)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The cases that have neither a result nor a failure."""
        return tuple(one for one in self.case_ids if one not in self.cases and one not in self.case_failures)

    @property
    def is_over(self) -> bool:
        """Whether the launch has said its last word."""
        return self.finished is not None or self.failed is not None

    @property
    def place(self) -> str:
        """Where the launch is, for a person."""
        if self.open_case is not None:
            return f"in {self.open_case} ({self.phase})"
        return f"after {len(self.cases)} of {len(self.case_ids)} cases" if self.cases else "before its first case"

    def add(self, message: Message) -> None:
        """Take in a message."""
        match message:
            case Started():
                pass
            case PhaseEntered():
                self.open_case, self.phase = message.case_id, message.phase
            case CaseMeasured():
                self.open_case = None
                self.cases[message.case_id] = message.result
                self.plans[message.case_id] = message.plan
                self.code_sha256[message.case_id] = message.code_sha256
                if message.effective_change:
                    self.effective_changes[message.case_id] = message.effective_change
            case CaseFailed():
                # It stays open: what a failed case leaves behind may be what the launch dies of next.
                self.case_failures[message.case_id] = message
            case LaunchFailed():
                self.failed = message
            case LaunchFinished():
                self.finished = message
            case _:
                assert_never(message)
