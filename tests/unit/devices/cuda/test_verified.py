"""What launches of one side have verified: known by its digest, for its case alone."""

from pathlib import Path

from perfgate.core.toolbox import Verification
from perfgate.devices.cuda.verified import VerifiedOutputs

RIGHT = Verification(passed=True, error=1e-7, tolerance=1e-5, detail="all elements against the reference")


def test_verified_outputs__are_known_by_their_digest(tmp_path: Path) -> None:
    outputs = VerifiedOutputs(tmp_path)
    assert outputs.known("own.scan[n=1/2]", "ab") is None
    outputs.keep("own.scan[n=1/2]", "ab", RIGHT)
    found = VerifiedOutputs(tmp_path).known("own.scan[n=1/2]", "ab")
    assert found is not None
    assert (found.passed, found.error, found.tolerance) == (True, 1e-7, 1e-5)
    assert outputs.known("own.scan[n=1/2]", "cd") is None
    assert outputs.known("own.sort", "ab") is None


def test_verified_outputs__that_cannot_be_kept_or_read_are_compared_again(tmp_path: Path) -> None:
    VerifiedOutputs(tmp_path / "gone").keep("own.scan", "ab", RIGHT)
    outputs = VerifiedOutputs(tmp_path)
    outputs.keep("own.scan", "ab", RIGHT)
    for place in tmp_path.iterdir():
        place.write_text("{")
    assert outputs.known("own.scan", "ab") is None
