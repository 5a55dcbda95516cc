"""Hashes of outputs: equal for equal bits, another for any change and any exchange."""

import numpy as np
import pytest

from perfgate.api.digest import digesting
from tests.factories import H200
from tests.unit.suite.fake_toolbox import FakeToolbox

COUNT = 1000


def digest_of(*outputs: np.ndarray) -> str:
    toolbox = FakeToolbox(gpu=H200)
    buffers = [toolbox.buffer(one.nbytes) for one in outputs]
    for buffer, values in zip(buffers, outputs, strict=True):
        toolbox.write(buffer, values)
    digest = digesting(toolbox, buffers)
    assert digest is not None
    assert digest() == digest()
    return digest()


def test_digest__is_of_every_word_and_its_place() -> None:
    values = np.random.default_rng(1).random(COUNT, dtype=np.float32)
    found = digest_of(values)
    assert found == digest_of(values.copy())
    for place in (0, 500, COUNT - 1):
        other = values.copy()
        other[place] = np.nextafter(other[place], np.float32(2))
        assert digest_of(other) != found
    assert digest_of(values[::-1].copy()) != found
    exchanged = values.copy()
    exchanged[[1, 2]] = exchanged[[2, 1]]
    assert digest_of(exchanged) != found


def test_digest__is_of_every_output() -> None:
    one, other = np.zeros(8, dtype=np.float32), np.ones(8, dtype=np.float32)
    assert len({digest_of(one), digest_of(one, other), digest_of(other, one)}) == 3


@pytest.mark.parametrize("sizes", [(), (6,), (4, 3)])
def test_digesting__needs_whole_words(sizes: tuple[int, ...]) -> None:
    toolbox = FakeToolbox(gpu=H200)
    assert digesting(toolbox, [toolbox.buffer(size) for size in sizes]) is None
