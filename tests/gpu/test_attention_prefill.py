"""Prefill attention on a real GPU at lengths that are no multiple of a tile, by every kernel that it can run."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.case import Case, Suite, Work
from perfgate.suite.attention_prefill import MMA, MMA_SMALL, prefill_kernel, prepared_prefill

pytestmark = pytest.mark.gpu

HEADS = 3


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from perfgate.devices.cuda.session import opened_session

    cache: Path = tmp_path_factory.mktemp("cache")
    with opened_session("", lambda _: Suite(name="none", cases=()), cache) as opened:
        yield opened


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("positions", [1, 7, 64, 65, 127, 128, 129, 255, 300, 1000, 1025])
def test_prefill__is_right_at_any_length(session: Any, positions: int, causal: bool) -> None:
    own = prefill_kernel(session.toolbox.gpu.compute_capability)
    for kernel in (own, MMA, MMA_SMALL):
        case = Case(
            id="operator.prefill",
            version=1,
            work=Work(read_bytes=1, footprint_bytes=2**20 * HEADS),
            prepare=partial(prepared_prefill, kernel, HEADS, positions, causal, 1),
        )
        session.add_case(case)
        with session.open_case(case.id) as opened:
            opened.poison()
            assert "NaN" in opened.verify().detail
            opened.execute()
            verification = opened.verify()
            assert verification.passed, f"{kernel}: {verification}"
