import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.devices.cuda import memory
from perfgate.devices.cuda.memory import Arena
from perfgate.errors import DeviceError, DeviceMemoryError
from tests.unit.devices.cuda.fake_cuda import FakeCuda


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    monkeypatch.setattr(memory, "driver", lambda: fake)
    return fake


def test_arena__hands_out_aligned_views_that_do_not_overlap(cuda: FakeCuda) -> None:
    arena = Arena()
    arena.reset(10_000)
    views = [arena.buffer(size) for size in (1, 255, 256, 257, 1000)]
    assert all((view.address - views[0].address) % 256 == 0 for view in views)
    for view, following in itertools.pairwise(views):
        assert view.address + view.size_bytes <= following.address


@given(st.lists(st.integers(1, 5000), max_size=20), st.integers(0, 40_000))
def test_arena__never_hands_out_more_than_it_has(sizes: list[int], capacity: int) -> None:
    fake = FakeCuda()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "driver", lambda: fake)
        arena = Arena()
        arena.reset(capacity)
        base = int(arena._allocation) if arena._allocation is not None else 0
        for size in sizes:
            try:
                view = arena.buffer(size)
            except DeviceError:
                continue
            assert view.address + view.size_bytes <= base + capacity


def test_arena__that_is_too_small_names_both_sizes(cuda: FakeCuda) -> None:
    arena = Arena()
    arena.reset(1000)
    arena.buffer(400)
    with pytest.raises(DeviceError, match=r"a buffer of 600 bytes does not fit: 488 of 1000 bytes left") as raised:
        arena.buffer(600)
    assert "declare the case's whole footprint" in raised.value.hint


def test_arena__is_reused_by_the_next_case(cuda: FakeCuda) -> None:
    arena = Arena()
    arena.reset(1000)
    first = arena.buffer(800)
    arena.reset(900)
    assert arena.buffer(900).address == first.address
    assert cuda.memory.allocated == 1000


def test_arena__frees_before_it_grows(cuda: FakeCuda) -> None:
    """Two arenas never exist at once, or a case could not use half of the memory."""
    cuda.memory.free_bytes = 1500
    arena = Arena()
    arena.reset(1000)
    arena.reset(1400)
    assert cuda.memory.allocated == 1400
    arena.close()
    assert cuda.memory.allocated == 0


def test_arena__without_enough_memory_says_how_much_there_is(cuda: FakeCuda) -> None:
    cuda.memory.free_bytes = 2 * 2**30
    with pytest.raises(DeviceMemoryError, match=r"3\.0 GiB asked for, 2\.0 of 2\.0 GiB free") as raised:
        Arena().reset(3 * 2**30)
    assert "stop what else uses this GPU's memory" in raised.value.hint


def test_arena__after_a_refusal_serves_a_smaller_case(cuda: FakeCuda) -> None:
    cuda.memory.free_bytes = 1000
    arena = Arena()
    arena.reset(800)
    with pytest.raises(DeviceMemoryError):
        arena.reset(2000)
    arena.reset(900)
    assert arena.buffer(900).size_bytes == 900


def test_arena__is_closed_once(cuda: FakeCuda) -> None:
    arena = Arena()
    arena.close()
    arena.reset(100)
    arena.close()
    arena.close()
    with pytest.raises(DeviceError):
        arena.buffer(1)


def test_arena__of_a_case_that_looks_at_all_memory_is_not_kept(cuda: FakeCuda) -> None:
    """Frameworks of the next cases need memory of their own."""
    cuda.memory.free_bytes = 1000
    arena = Arena()
    arena.reset(900)
    arena.reset(200)
    assert cuda.memory.allocated == 200
    arena.reset(100)
    assert cuda.memory.allocated == 200
