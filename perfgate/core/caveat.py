"""A doubt attached to a value: a code that programs read and a sentence that people read."""

from dataclasses import dataclass

# Code of the stored baseline's verdict, where the comparison with a base decides.
STORED_BASELINE = "stored-baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveat:
    """A doubt about a measured value, a comparison or a run.

    Attributes:
        code: kebab-case, stable across versions, e.g. ``"not-settled"``.
        message: what is doubtful, in a sentence.
        remedy: what to do about it; empty where nothing can be done.
    """

    code: str
    message: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """What is doubtful, and what to do about it."""
        if not self.remedy:
            return self.message
        return f"{self.message}{' ' if self.message.endswith('.') else '; '}{self.remedy}"
