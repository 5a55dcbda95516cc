"""own.cu run on the CPU: the data that inputs get, and the scan for poison."""

import numpy as np
import pytest

from perfgate.core.gpu import Gpu
from tests.unit.suite.fake_toolbox import FakeToolbox, bf16_words, random_integers, random_small_uniform
from tests.unit.suite.host_toolbox import COMPILER, HostToolbox

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++ to run kernels on the CPU with")
COUNT = 1003


@pytest.mark.parametrize(
    ("name", "storage", "bits"), [("fp64", np.float64, 53), ("fp16", np.float16, 11), ("bf16", np.uint16, 8)]
)
def test_fill_uniform__makes_the_same_numbers_as_numpy(name: str, storage: type, bits: int) -> None:
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    buffer = toolbox.buffer(COUNT * np.dtype(storage).itemsize)
    kernel = toolbox.kernel("own.cu", f"fill_uniform_{name}")
    kernel.bind(grid=(3, 1, 1), block=(64, 1, 1), args=(buffer, np.uint64(COUNT), np.uint64(5)))()
    expected = random_small_uniform(5, COUNT, bits)
    stored = bf16_words(expected) if name == "bf16" else expected.astype(storage)
    assert np.array_equal(toolbox.read(buffer, storage, COUNT), stored)
    assert np.array_equal(stored.astype(np.float64), expected) or name == "bf16"
    assert np.all(np.abs(expected) < 1)
    assert abs(expected.mean()) < 0.1
    toolbox.assert_guarded()


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("limit", [0, 7, 100])
def test_fill_integers__stay_below_their_limit(width: int, limit: int) -> None:
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    buffer = toolbox.buffer(COUNT * width)
    args = (buffer, np.uint64(COUNT), np.uint64(9), np.uint64(limit), np.uint32(width))
    toolbox.kernel("own.cu", "fill_integers").bind(grid=(2, 1, 1), block=(64, 1, 1), args=args)()
    made = toolbox.read(buffer, f"u{width}", COUNT)
    assert np.array_equal(made, random_integers(9, COUNT, limit, f"u{width}"))
    if limit:
        assert set(made) == set(range(limit))
    toolbox.assert_guarded()


def test_count_poison__counts_words_and_finds_the_first() -> None:
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    buffer, tally = toolbox.buffer(4 * COUNT), toolbox.buffer(16)
    words = np.arange(COUNT, dtype=np.uint32)
    words[[17, 900]] = 0xFFFFFFFF
    toolbox.write(buffer, words)
    toolbox.write(tally, np.array([0, 2**64 - 1], dtype=np.uint64))
    args = (buffer, np.uint64(COUNT), tally)
    toolbox.kernel("own.cu", "count_poison").bind(grid=(2, 1, 1), block=(64, 1, 1), args=args)()
    assert list(toolbox.read(tally, np.uint64, 2)) == [2, 17]


def test_hash_words__is_that_of_numpy_whatever_the_grid() -> None:
    words = np.random.default_rng(1).integers(2**32, size=COUNT, dtype=np.uint32)
    host, fake = HostToolbox(gpu=Gpu(name="host")), FakeToolbox(gpu=Gpu(name="fake"))
    found = []
    for toolbox, blocks in ((host, 1), (host, 3), (fake, 1)):
        buffer, sums = toolbox.buffer(words.nbytes), toolbox.buffer(16)
        toolbox.write(buffer, words)
        toolbox.write(sums, np.zeros(2, dtype=np.uint64))
        args = (buffer, np.uint64(COUNT), sums)
        toolbox.kernel("own.cu", "hash_words").bind(grid=(blocks, 1, 1), block=(64, 1, 1), args=args)()
        found.append(list(toolbox.read(sums, np.uint64, 2)))
    assert found[0] == found[1] == found[2]
