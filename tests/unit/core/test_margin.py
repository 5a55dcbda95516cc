"""Margins: the policy's own, defaults, and what sessions teach."""

import math
import statistics

import pytest
from scipy import stats

from perfgate.core.baseline import CalibratedMargin
from perfgate.core.margin import (
    PRIOR_RATIO,
    SessionLevels,
    is_supported,
    margin_defaults,
    margins,
    noise_family,
    pooled,
    prediction_bound,
    session_noise,
    shrunken_spread,
)
from perfgate.core.policy import Policy
from perfgate.core.report import Margin, MarginSource

COPY = "bandwidth.copy[bytes=4GiB]"
POLICY = Policy()


def level(*medians: float, same_chip: bool = True) -> SessionLevels:
    return SessionLevels(same_chip=same_chip, medians=medians)


def margin_of(
    found: SessionLevels, case_id: str = COPY, policy: Policy = POLICY, **calibrated: CalibratedMargin
) -> Margin:
    return margins({case_id: found}, policy=policy, calibrated=calibrated and {case_id: calibrated["stored"]})[case_id]


@pytest.mark.parametrize(
    ("case_id", "same", "cross"),
    [
        (COPY, 0.005, 0.01),
        ("gemm.bf16[n=4096]", 0.01, 0.01),
        ("launch.graph_node", 0.01, 0.15),
        ("launch.gap", 0.10, 0.20),
        ("launch.gap[nodes=64]", 0.10, 0.20),
        ("launch.gapless", 0.01, 0.02),
        ("own.kernel", 0.01, 0.02),
    ],
)
def test_margin_defaults__by_family_and_chip(case_id: str, same: float, cross: float) -> None:
    assert margin_defaults(case_id).same_chip == same
    assert margin_of(level(0.0), case_id).relative == same
    assert margin_of(level(0.0), case_id).source is MarginSource.SAME_CHIP_DEFAULT
    other = margin_of(level(0.0, same_chip=False), case_id)
    assert (other.relative, other.source) == (cross, MarginSource.CROSS_CHIP_DEFAULT)


def test_noise_family__of_own_cases_is_their_family() -> None:
    assert noise_family("own.kernel[n=2]") == "own"
    assert noise_family("launch.gap[n=2]") == "launch.gap"
    assert noise_family("gemm.bf16[m=16,n=8192,k=8192]") == "gemm.bf16[m="
    assert noise_family("gemm.bf16[n=4096]") == "gemm"


def test_margins__the_policys_own_value_goes_first_and_its_last_pattern_wins() -> None:
    policy = Policy(margins={"bandwidth.*": 0.02, "bandwidth.copy": 0.03, "gemm.*": 0.04})
    found = margin_of(level(0.0, 0.01), policy=policy)
    assert (found.relative, found.source) == (0.03, MarginSource.POLICY)
    assert found.sessions == 2
    assert is_supported(found)  # a policy may insist, and is told of the noise


def test_margins__one_session_stands_for_the_prior() -> None:
    # default = t[6, 1 - 0.01 / 20] * s0 * sqrt(2) with s0 = default / 8.4
    assert stats.t.ppf(1 - 0.01 / 20, 6) * math.sqrt(2) == pytest.approx(PRIOR_RATIO, rel=0.005)
    found = margin_of(level(0.0))
    assert found.session_spread == pytest.approx(0.005 / 8.4)
    assert found.session_term == pytest.approx(stats.t.ppf(0.975, 6) * 0.005 / 8.4 * math.sqrt(2))


def test_margins__more_sessions_follow_the_formula_worked_by_hand() -> None:
    medians = (0.0, 0.0006, 0.0012)
    spread = statistics.stdev(medians)
    assert spread == pytest.approx(0.0006)
    shrunken = math.sqrt((6 * (0.005 / 8.4) ** 2 + 4 * spread**2) / 10)
    bound = stats.t.ppf(1 - 0.01, 10) * shrunken * math.sqrt(1 + 1 / 3)
    quiet = margins({COPY: level(*medians)}, policy=POLICY, calibrated={})[COPY]
    assert quiet.bound == pytest.approx(bound)
    assert quiet.relative == max(bound, POLICY.margin_floor)
    assert (quiet.source, quiet.sessions) == (MarginSource.SAME_CHIP_CALIBRATED, 3)


def test_margins__the_family_lends_its_spread_to_a_case_that_was_lucky() -> None:
    loud = "bandwidth.gather[bytes=4GiB]"
    alone = margins({COPY: level(0.0, 0.0)}, policy=POLICY, calibrated={})[COPY]
    lent = margins({COPY: level(0.0, 0.0), loud: level(0.0, 0.002)}, policy=POLICY, calibrated={})[COPY]
    root_mean_square = math.sqrt((0.002 / math.sqrt(2)) ** 2 / 2)
    assert lent.session_spread == pytest.approx(shrunken_spread(0.005, 2, 0.0, root_mean_square))
    assert lent.session_spread > alone.session_spread
    gap = margins({COPY: level(0.0, 0.0), "launch.gap": level(0.0, 0.05)}, policy=POLICY, calibrated={})[COPY]
    assert gap.session_spread == alone.session_spread


def test_margins__never_fall_below_the_floor_however_many_quiet_sessions() -> None:
    found = margin_of(level(*([0.0] * 50)))
    assert found.relative == POLICY.margin_floor
    assert found.bound is not None
    assert found.bound < POLICY.margin_floor


@pytest.mark.parametrize("case_id", ["launch.graph_node", "bandwidth.h2d[bytes=64MiB]", "bandwidth.d2h[bytes=64MiB]"])
def test_margins__chips_of_kinds_that_agree_do_not_narrow_the_margin_of_the_next(case_id: str) -> None:
    # Four H200s read a graph's node within 0.2 %, the fifth 7 % more; five hosts agreed, the sixth copied 3 % slower.
    alike = (0.0, 0.0001, 0.0002, 0.0001)
    across, same = (
        margins({case_id: level(*alike, same_chip=same_chip)}, policy=POLICY, calibrated={})[case_id]
        for same_chip in (False, True)
    )
    assert across.relative == margin_defaults(case_id).cross_chip
    assert same.relative < margin_defaults(case_id).same_chip
    stored = CalibratedMargin(relative=0.004, sessions=9, same_chip=False)
    one = margins({case_id: level(0.0, same_chip=False)}, policy=POLICY, calibrated={case_id: stored})[case_id]
    assert one.relative == margin_defaults(case_id).cross_chip


def test_margins__a_bound_beyond_the_cap_means_not_gated() -> None:
    found = margin_of(level(0.0, 0.01, 0.02))
    assert found.relative == margin_defaults(COPY).cross_chip
    assert found.bound is not None
    assert found.bound > found.relative
    assert not is_supported(found)


def test_margins__get_better_with_sessions_not_worse() -> None:
    found = [margin_of(level(*([0.0, 0.0007] * half))).relative for half in (1, 2, 4)]
    assert found == sorted(found, reverse=True)


def test_margins__a_stored_margin_stands_in_when_it_saw_more_sessions() -> None:
    stored = CalibratedMargin(relative=0.0035, sessions=8, same_chip=True)
    found = margin_of(level(0.0), stored=stored)
    assert (found.relative, found.source, found.sessions) == (0.0035, MarginSource.SAME_CHIP_CALIBRATED, 8)
    assert margin_of(level(0.0, same_chip=False), stored=stored).source is MarginSource.CROSS_CHIP_DEFAULT
    few = CalibratedMargin(relative=0.0035, sessions=2, same_chip=True)
    assert margin_of(level(0.0, 0.0, 0.0), stored=few).sessions == 3
    elsewhere = CalibratedMargin(relative=0.0035, sessions=8, same_chip=True, chip="another")
    assert margin_of(level(0.0), stored=elsewhere).relative == 0.005


def test_margins__a_stored_margin_cannot_loosen_the_gate_beyond_the_cap() -> None:
    found = margin_of(level(0.0), stored=CalibratedMargin(relative=0.5, sessions=9, same_chip=True))
    assert found.relative == margin_defaults(COPY).cross_chip
    assert not is_supported(found)


def test_session_noise__warns_beyond_a_quarter_of_the_margin() -> None:
    assert session_noise(margin_of(level(0.0))) is None
    tight = session_noise(margin_of(level(0.0), policy=Policy(margins={"*": 0.002})))
    assert tight is not None
    assert tight.code == "session-noise"
    assert "0.24 %" in tight.remedy  # 4 x 0.5 % / 8.4


def test_prediction_bound__is_the_interval_of_one_further_session() -> None:
    assert prediction_bound(1.0, freedom=2, sessions=3, quantile=0.975) == pytest.approx(
        4.303 * math.sqrt(4 / 3), rel=1e-3
    )


def test_pooled__shifts_every_session_to_the_common_level() -> None:
    launches, medians = pooled([[1.0, 2.0, 3.0], [11.0, 12.0, 13.0], [5.0, 6.0, 7.0]])
    assert medians == (2.0, 12.0, 6.0)
    assert launches == (5.0, 6.0, 7.0, 5.0, 6.0, 7.0, 5.0, 6.0, 7.0)


@pytest.mark.parametrize("bad", [0.0, -0.01, math.nan, math.inf])
def test_calibrated_margin__refuses_what_is_no_margin(bad: float) -> None:
    with pytest.raises(ValueError, match="positive number"):
        CalibratedMargin(relative=bad, sessions=3, same_chip=True)
