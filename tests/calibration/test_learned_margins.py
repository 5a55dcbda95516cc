"""Margins learned from a few sessions: safe where sessions are noisy, sharp where they are quiet."""

from dataclasses import dataclass

import numpy as np
import pytest

from perfgate.core.comparison import comparison
from perfgate.core.decision import decision
from perfgate.core.margin import SessionLevels, margins, pooled
from perfgate.core.policy import Policy
from perfgate.core.verdict import CaseVerdict

POLICY = Policy()
CASES = [f"bandwidth.copy[bytes={size}MiB]" for size in range(1, 21)]
LAUNCH = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    accused: float
    found: float
    margin: float


def learned(*, between: float, sessions: int, checks: int, seed: int) -> Learned:
    """Check unchanged code, and code 1 % slower, against a baseline of some sessions."""
    generator = np.random.default_rng(seed)

    def session(launches: int) -> np.ndarray:
        level = between * generator.standard_normal((len(CASES), 1))
        return level + LAUNCH * generator.standard_normal((len(CASES), launches))

    accused, found, relative = 0, 0.0, []
    for _ in range(checks):
        history = [session(12) for _ in range(sessions)]
        joined = [pooled([one[place].tolist() for one in history]) for place in range(len(CASES))]
        levels = {
            case_id: SessionLevels(same_chip=True, medians=medians)
            for case_id, (_, medians) in zip(CASES, joined, strict=True)
        }
        known = margins(levels, policy=POLICY, calibrated={})
        margin = np.array([known[case_id].relative for case_id in CASES])
        baseline, candidate = np.array([launches for launches, _ in joined]), session(6)
        for slower in (False, True):
            family = comparison(candidate + (np.log(1.01) if slower else 0.0), baseline, margin)
            regressed = decision(family, level=0.01, equivalence_level=0.05).is_verdict(CaseVerdict.REGRESSED)
            if slower:
                found += float(regressed.mean())
            else:
                accused += int(regressed.any())
        relative.append(float(np.median(margin)))
    return Learned(accused=accused / checks, found=found / checks, margin=float(np.mean(relative)))


def test_learned_margin__of_quiet_sessions_is_sharp_and_safe() -> None:
    # A plain prediction bound would be 2.4 % here, and find 1 % in 7 of 100.
    result = learned(between=0.0007, sessions=3, checks=150, seed=1)
    assert 0.003 <= result.margin <= 0.005
    assert result.accused <= 0.01
    assert result.found >= 0.98


@pytest.mark.slow
def test_learned_margin__grows_with_the_noise_of_sessions() -> None:
    quiet = learned(between=0.0003, sessions=5, checks=100, seed=2)
    noisy = learned(between=0.0012, sessions=5, checks=200, seed=3)
    assert quiet.margin < noisy.margin <= 0.01
    assert noisy.accused <= 0.02


def test_learned_margin__gets_better_with_sessions() -> None:
    few, many = (learned(between=0.0003, sessions=count, checks=60, seed=4) for count in (2, 6))
    assert many.margin <= few.margin
    assert many.found >= 0.98
