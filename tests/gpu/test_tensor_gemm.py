"""Products on a real GPU's tensor cores at shapes that end inside tiles, by the kernel that its architecture runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from perfgate.core.case import Suite
from perfgate.resources import cache_folder
from perfgate.suite.product import BF16, FP8, FP16, INT8, TF32, Format, Shape, product_case
from perfgate.suite.sizes import DoesNotFitError
from perfgate.suite.tensor_gemm import tensor_kernel

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from perfgate.devices.cuda.session import opened_session

    with opened_session("", lambda _: Suite(name="none", cases=()), cache_folder()) as opened:
        yield opened


@pytest.mark.parametrize(
    "shape",
    [
        (1, 16, 16),
        (64, 128, 16),
        (130, 272, 80),
        (257, 512, 48),
        (300, 528, 208),
        (1000, 1008, 1008),
        (4000, 4112, 464),
    ],
)
@pytest.mark.parametrize("form", [BF16, FP16, TF32, FP8, INT8], ids=lambda form: form.name)
def test_product__is_right_at_any_shape(session: Any, form: Format, shape: Shape) -> None:
    gpu = session.toolbox.gpu
    try:
        kernel = tensor_kernel(gpu, form, shape)
    except DoesNotFitError as error:
        pytest.skip(str(error))
    case = product_case(gpu, identity="gemm.any", version=1, form=form, shape=shape, kernel=kernel)
    session.add_case(case)
    with session.open_case(case.id) as opened:
        opened.poison()
        assert "unwritten" in opened.verify().detail
        opened.time_batch(executions=opened.sets, samples=1)
        verification = opened.verify()
        assert verification.passed, str(verification)
