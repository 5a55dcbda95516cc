"""GPUs that the tests of this room share."""

from dataclasses import replace

from hypothesis import strategies as st

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import sheet_of
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.suite import built_in_suite

# Small enough to emulate its whole suite in numpy.
SMALL = Gpu(
    name="small",
    compute_capability="8.0",
    sm_count=10,
    memory_bytes=120 * 2**20,
    memory_bus_bits=256,
    memory_clock_hz=1e9,
    sm_clock_max_hz=1e9,
    l2_bytes=2**16,
    integrated=False,
)


def table_gpu(name: str) -> Gpu:
    """A GPU as its datasheet row describes it, with the memory that its driver would tell."""
    sheet = sheet_of(read_gpu_table(), Gpu(name=name))
    assert sheet is not None
    assert sheet.memory_gb is not None
    return replace(sheet.gpu(), memory_bytes=int(sheet.memory_gb * 1e9))


def case_of(suite: Suite, name: str) -> Case:
    return next(case for case in suite.cases if case.id.split("[")[0] == name)


def small_case(name: str) -> Case:
    return case_of(built_in_suite("default", SMALL), name)


def gpus() -> st.SearchStrategy[Gpu]:
    """Any GPU, of which anything may be unknown."""
    return st.builds(
        Gpu,
        name=st.just("any"),
        compute_capability=st.sampled_from([None, "7.5", "8.0", "8.9", "9.0", "12.0"]),
        sm_count=st.none() | st.integers(1, 200),
        memory_bytes=st.none() | st.integers(2**20, 2**39),
        memory_bus_bits=st.none() | st.sampled_from([64, 128, 384, 6016]),
        memory_clock_hz=st.none() | st.floats(1e8, 2e10),
        sm_clock_max_hz=st.none() | st.floats(3e8, 3e9),
        l2_bytes=st.none() | st.integers(2**17, 2**28),
        integrated=st.none() | st.booleans(),
    )
