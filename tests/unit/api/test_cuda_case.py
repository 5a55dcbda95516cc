"""Kernels of one's own on a device in numpy: data, work, buffer sets, verification."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perfgate.api as pg
from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError
from tests.unit.suite.builders import SMALL
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox

N = 1000


def axpy(bind: Bind) -> None:
    x, y, scale, count = bind.args
    y.view(np.float32)[: int(count)] = scale * x.view(np.float32)[: int(count)]


def made_case(**changes: Any) -> pg.Case:
    settings: dict[str, Any] = {
        "source": "axpy.cu",
        "function": "axpy",
        "grid": 4,
        "block": 256,
        "args": (pg.Input(N), pg.Output(N), np.float32(2), np.uint32(N)),
        "reference": lambda x: 2 * x,
        "axes": {"n": N},
        "sets": 3,
    }
    case = pg.cuda_case(SMALL, "axpy.naive", **(settings | changes))
    assert isinstance(case, pg.Case)
    return case


def opened(case: pg.Case, kernel: Callable[[Bind], None] = axpy) -> tuple[FakeToolbox, pg.Workload]:
    toolbox = FakeToolbox(gpu=SMALL, kernels={"axpy": kernel})
    return toolbox, case.prepare(toolbox)


def executed(case: pg.Case, kernel: Callable[[Bind], None] = axpy, times: int = 1) -> pg.Verification:
    _, workload = opened(case, kernel)
    workload.poison()
    for _ in range(times):
        for execute in workload.executions:
            execute()
    return workload.verify()


def test_cuda_case__derives_id_work_and_source() -> None:
    case = made_case(work_flop=N, pipe="fp32")
    assert case.id == "axpy.naive[n=1000]"
    assert (case.work.read_bytes, case.work.write_bytes, case.work.work_flop) == (4 * N, 4 * N, N)
    assert case.work.footprint_bytes == 3 * 8 * N
    assert case.sources == (str(Path(__file__).parent / "axpy.cu"),)
    assert case.timing is pg.Timing.EVENTS
    assert made_case(graph=True).timing is pg.Timing.REPLAY
    assert made_case(read_bytes=7, write_bytes=5).work.moved_bytes == 12


def test_cuda_case__passes_where_the_kernel_is_right() -> None:
    found = executed(made_case())
    assert found.passed
    assert found.error == 0.0


def test_cuda_case__gives_every_buffer_set_other_data_and_the_same_in_every_launch() -> None:
    def inputs() -> list[np.ndarray]:
        toolbox, _ = opened(made_case())
        binds = [bind for bind in toolbox.binds if bind.function == "axpy"]
        return [bind.args[0].view(np.float32).copy() for bind in binds]

    first, again = inputs(), inputs()
    assert len(first) == 3
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])


def test_cuda_case__sees_a_wrong_value_and_says_where() -> None:
    def wrong(bind: Bind) -> None:
        axpy(bind)
        bind.args[1].view(np.float32)[17] += 1

    found = executed(made_case(), wrong)
    assert not found.passed
    assert "1 of 1000 elements differ from the reference, the first at index 17" in found.detail


def test_cuda_case__sees_what_was_left_unwritten_even_without_a_reference() -> None:
    def short(bind: Bind) -> None:
        x, y, scale, count = bind.args
        axpy(replace(bind, args=(x, y, scale, np.uint32(count - 1))))

    for reference in (None, lambda x: 2 * x):
        found = executed(made_case(reference=reference), short)
        assert not found.passed
        assert "left unwritten" in found.detail
    assert executed(made_case(reference=None)).passed


def test_cuda_case__an_execution_that_does_nothing_is_wrong() -> None:
    assert not executed(made_case(), lambda bind: None).passed


@pytest.mark.parametrize("dtype", ["fp64", "fp16", "bf16", "int8", "uint16", "int32", "uint64"])
def test_cuda_case__takes_every_element_type(dtype: str) -> None:
    def copy(bind: Bind) -> None:
        source, target = bind.args
        target.view(np.uint8)[:] = source.view(np.uint8)

    case = made_case(args=(pg.Input(N, dtype), pg.Output(N, dtype)), reference=lambda x: x)
    assert executed(case, copy).passed
    toolbox, _ = opened(case, copy)
    stored = toolbox.read(next(bind for bind in toolbox.binds if bind.function == "axpy").args[0], np.uint8, N)
    assert len(np.unique(stored)) > 10


def test_input__below_bounds_integers_for_use_as_indices() -> None:
    def copy(bind: Bind) -> None:
        bind.args[1].view(np.int32)[:N] = bind.args[0].view(np.int32)[:N]

    seen: list[np.ndarray] = []

    def reference(indices: np.ndarray) -> np.ndarray:
        seen.append(indices)
        return indices

    case = made_case(args=(pg.Input(N, "int32", below=7), pg.Output(N, "int32")), reference=reference)
    assert executed(case, copy).passed
    assert set(np.concatenate(seen)) == set(range(7))


def test_input__values_come_from_a_seeded_generator_on_the_host() -> None:
    case = made_case(
        args=(pg.Input(N, values=lambda random: np.sort(random.random(N))), pg.Output(N), np.float32(2), np.uint32(N))
    )
    toolbox, _ = opened(case)
    first = next(bind for bind in toolbox.binds if bind.function == "axpy").args[0].view(np.float32)
    assert np.all(np.diff(first) >= 0)
    with pytest.raises(ConfigurationError, match="made 5 elements of 1000"):
        opened(made_case(args=(pg.Input(N, values=lambda random: random.random(5)), pg.Output(N))))


def test_input__made_by_a_kernel_of_the_same_source() -> None:
    def make(bind: Bind) -> None:
        buffer, count, seed = bind.args
        buffer.view(np.float32)[: int(count)] = float(seed) + np.arange(int(count))

    case = made_case(args=(pg.Input(N, made_by="make"), pg.Output(N), np.float32(2), np.uint32(N)))
    toolbox = FakeToolbox(gpu=SMALL, kernels={"axpy": axpy, "make": make})
    workload = case.prepare(toolbox)
    for execute in workload.executions:
        execute()
    assert workload.verify().passed
    assert [bind.source for bind in toolbox.binds if bind.function == "make"] == [case.sources[0]] * 3


def test_in_out__is_filled_anew_and_run_once_for_the_reference() -> None:
    def double(bind: Bind) -> None:
        bind.args[0].view(np.float32)[:N] *= 2

    case = made_case(args=(pg.InOut(N),), reference=lambda x: 2 * x)
    assert (case.work.read_bytes, case.work.write_bytes) == (4 * N, 4 * N)
    assert executed(case, double, times=5).passed

    def treble(bind: Bind) -> None:
        bind.args[0].view(np.float32)[:N] *= 3

    assert not executed(case, treble, times=5).passed


def test_cuda_case__takes_as_many_buffer_sets_as_beat_the_cache() -> None:
    gpu = replace(SMALL, memory_bytes=2**32, l2_bytes=2**20)
    args = (pg.Input(2**18), pg.Output(2**18), np.float32(2), np.uint32(2**18))
    cold = pg.cuda_case(
        gpu, "axpy.naive", source="axpy.cu", function="axpy", grid=1, block=1, args=args, reference=None
    )
    assert isinstance(cold, pg.Case)
    assert cold.work.footprint_bytes == 16 * 2**20
    tiny = pg.cuda_case(
        gpu, "axpy.naive", source="axpy.cu", function="axpy", grid=1, block=1, args=(pg.Output(1),), reference=None
    )
    assert isinstance(tiny, pg.Case)
    assert tiny.work.footprint_bytes == 256 * 4


@pytest.mark.parametrize("memory_bytes", [None, 4000])
def test_cuda_case__that_does_not_fit_is_absent_with_the_reason(memory_bytes: int | None) -> None:
    gpu: Gpu = replace(SMALL, memory_bytes=memory_bytes)
    found = pg.cuda_case(
        gpu, "axpy.naive", source="a.cu", function="f", grid=1, block=1, args=(pg.Output(N),), reference=None
    )
    assert isinstance(found, pg.AbsentCase)
    assert "memory" in found.reason


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"args": (pg.Input(N), 3)}, "argument 1 is a int"),
        ({"args": (pg.Input(N),)}, "no Output or InOut"),
        ({"grid": 0}, "grid=0"),
        ({"block": (1, 2, 3, 4)}, "block="),
        ({"grid": 1.5}, "grid=1.5"),
        ({"axes": {"n": "a/b"}}, "axis n"),
    ],
)
def test_cuda_case__refuses_what_makes_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        made_case(**changes)


@pytest.mark.parametrize(("shape", "dtype"), [(0, "fp32"), ((4, 0), "fp32"), (4, "float32")])
def test_input__refuses_no_elements_and_unknown_types(shape: Any, dtype: str) -> None:
    with pytest.raises(ConfigurationError):
        pg.Input(shape, dtype)


def test_cuda_case__passes_options_and_defines_to_the_compiler() -> None:
    seen: dict[str, Any] = {}

    class Toolbox(FakeToolbox):
        def kernel(self, source: str, function: str, **rest: Any) -> Any:
            if function == "axpy":
                seen.update(rest)
            return super().kernel(source, function, defines=rest.get("defines"))

    made_case(options=("-Ifolder",), defines={"TILE": 8}).prepare(Toolbox(gpu=SMALL, kernels={"axpy": axpy}))
    assert seen == {"options": ("-Ifolder",), "defines": {"TILE": 8}}


def test_reference__of_several_outputs_is_a_tuple() -> None:
    def both(bind: Bind) -> None:
        x, one, two = bind.args
        one.view(np.float32)[:N] = x.view(np.float32)[:N]
        two.view(np.float32)[:N] = -x.view(np.float32)[:N]

    args = (pg.Input(N), pg.Output(N), pg.Output(N))
    assert executed(made_case(args=args, reference=lambda x: (x, -x)), both).passed
    found = executed(made_case(args=args, reference=lambda x: (x, x)), both)
    assert not found.passed
    assert "output 1 of buffer set 0" in found.detail
    with pytest.raises(ConfigurationError, match="returns 1 arrays for 2 outputs"):
        executed(made_case(args=args, reference=lambda x: x), both)
