"""Outputs that launches of one side have verified: what a later launch writes the same is not compared again."""

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.toolbox import Verification


@dataclass(frozen=True, slots=True)
class VerifiedOutputs:
    """What was verified, one file a case.

    Attributes:
        folder: of one side of a session: the same code, so that a right output of it stays right.
    """

    folder: Path

    def known(self, case_id: str, digest: str) -> Verification | None:
        """Return how an output with this digest was verified before; None where it was not."""
        try:
            kept = json.loads(self._place(case_id).read_text(encoding="utf-8"))
            if kept["digest"] != digest:
                return None
            error, tolerance = float(kept["error"]), float(kept["tolerance"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        detail = "bit by bit what an earlier launch verified"
        return Verification(passed=True, error=error, tolerance=tolerance, detail=detail)

    def keep(self, case_id: str, digest: str, found: Verification) -> None:
        """Keep the digest of an output that is right; where it cannot be written, the next launch compares again."""
        kept = {"digest": digest, "error": found.error, "tolerance": found.tolerance}
        with contextlib.suppress(OSError):
            self._place(case_id).write_text(json.dumps(kept), encoding="utf-8")

    def _place(self, case_id: str) -> Path:
        return self.folder / f"{hashlib.sha256(case_id.encode()).hexdigest()}.json"
