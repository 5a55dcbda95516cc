"""Nsight Compute, played by a script that answers from a recorded table (an H200's, ncu 2025.3)."""

import os
import stat
from pathlib import Path

import pytest

from perfgate.devices.cuda import ncu
from perfgate.errors import ConfigurationError, DeviceError

RECORDED = Path(__file__).parents[3] / "data" / "h200-ncu.csv"


def fake_ncu(folder: Path, said: str, *, code: int = 0) -> None:
    """Put an ncu on a path that keeps its arguments and writes ``said`` where its log is wanted."""
    (folder / "said").write_text(said, encoding="utf-8")
    script = folder / "ncu"
    script.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" > {folder}/arguments\n'
        'while [ "$1" != --log-file ]; do shift; done\n'
        f'cp {folder}/said "$2"; echo program output; exit {code}\n',
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def kernels_of(pipes: tuple[str | None, ...] = ("fp32",)) -> tuple[ncu.CountedKernel, ...]:
    return ncu.counted_kernels(["program", "argument"], pipes=pipes, environment=dict(os.environ), timeout_s=20)


def test_counted_kernels__leaves_clocks_alone_and_counts_only_between_start_and_stop(folder: Path) -> None:
    fake_ncu(folder, RECORDED.read_text(encoding="utf-8"))
    assert kernels_of()
    arguments = (folder / "arguments").read_text(encoding="utf-8").splitlines()
    assert arguments[-2:] == ["program", "argument"]
    for option, value in (("--clock-control", "none"), ("--profile-from-start", "off"), ("--page", "raw")):
        assert arguments[arguments.index(option) + 1] == value
    metrics = arguments[arguments.index("--metrics") + 1].split(",")
    assert "sm__sass_thread_inst_executed_op_ffma_pred_on.sum" in metrics
    assert not any("tensor" in one for one in metrics)
    assert len(metrics) == len(set(metrics))


def test_counted_kernels__asks_for_the_counters_of_each_pipe(folder: Path) -> None:
    fake_ncu(folder, RECORDED.read_text(encoding="utf-8"))
    kernels_of(("bf16-tensor", None, "bf16-tensor"))
    text = (folder / "arguments").read_text(encoding="utf-8")
    assert text.count("sm__ops_path_tensor_src_bf16_dst_fp32.sum") == 1
    assert "ffma" not in text


def test_counted_kernels__a_driver_that_forbids_counters_is_explained(folder: Path) -> None:
    said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    fake_ncu(folder, said, code=1)
    with pytest.raises(ConfigurationError, match="only administrators") as caught:
        kernels_of()
    assert "NVreg_RestrictProfilingToAdminUsers=0" in caught.value.hint


def test_counted_kernels__an_error_of_ncu_is_passed_on(folder: Path) -> None:
    fake_ncu(folder, "==PROF== Connected\n==ERROR== Failed to find metric dram__nonsense.sum\n", code=1)
    with pytest.raises(DeviceError, match="Failed to find metric dram__nonsense"):
        kernels_of()


def test_counted_kernels__a_program_that_fails_shows_its_last_lines(folder: Path) -> None:
    fake_ncu(folder, "==PROF== Connected\n", code=5)
    with pytest.raises(DeviceError, match=r"exit code 5:\n(.*\n)*program output"):
        kernels_of()


def test_counted_kernels__a_hang_is_ended(folder: Path) -> None:
    fake_ncu(folder, "")
    (folder / "ncu").write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    with pytest.raises(DeviceError, match="did not end within"):
        ncu.counted_kernels(["program"], pipes=[], environment=dict(os.environ), timeout_s=0.2)


def test_found_ncu__names_the_remedy_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ncu, "_PLACES", (f"{tmp_path}/nsight/*/ncu",))
    with pytest.raises(ConfigurationError, match="no ncu on PATH") as caught:
        ncu.found_ncu()
    assert "Nsight Compute" in caught.value.message
    assert "cuda-nsight-compute" in caught.value.hint


def test_found_ncu__finds_the_newest_beside_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("2024.1.0", "2025.3.1"):
        place = tmp_path / "nsight" / version / "ncu"
        place.parent.mkdir(parents=True)
        place.touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(ncu, "_PLACES", (f"{tmp_path}/nsight/*/ncu",))
    assert ncu.found_ncu().endswith("2025.3.1/ncu")


def test_parse_kernels__reads_every_unit_into_base_units() -> None:
    text = (
        '"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum",'
        '"sm__throughput.avg.pct_of_peak_sustained_elapsed"\n'
        '"","","Mbyte","byte","us","%"\n"0","k(float *, int)","4,294.5","1,024","1,000.5","12.5"\n'
    )
    (kernel,) = ncu.parse_kernels(f"==PROF== Connected to process 7\n{text}")
    assert kernel.name == "k(float *, int)"
    counters = kernel.counters("fp32")
    assert (counters.read_bytes, counters.write_bytes) == (4_294_500_000, 1024)
    assert counters.duration_s == pytest.approx(1.0005e-3)
    assert counters.sm_share == pytest.approx(0.125)
    assert counters.work_flop is None
    assert counters.dram_share is None


def test_parse_kernels__what_ncu_could_not_read_is_absent() -> None:
    text = '"ID","Kernel Name","dram__bytes_read.sum"\n"","","byte"\n"0","k","n/a"\n'
    (kernel,) = ncu.parse_kernels(text)
    with pytest.raises(DeviceError, match="dram__bytes_read"):
        kernel.counters(None)


@pytest.mark.parametrize("text", ["", "==PROF== Disconnected\n", '"not","a","table"\n'])
def test_parse_kernels__no_table_is_an_error(text: str) -> None:
    with pytest.raises(DeviceError, match="counted no kernel"):
        ncu.parse_kernels(text)


def test_parse_kernels__an_h200s_table_has_a_mark_before_each_case() -> None:
    groups = ncu.grouped(ncu.parse_kernels(RECORDED.read_text(encoding="utf-8")))
    names = [[kernel.name for kernel in group] for group in groups]
    assert names == [[f"bandwidth_{one}"] for one in ("read", "write", "copy", "triad")] + [["gemm_fp32"]]
    assert groups[-1][0].counters("fp32").work_flop == 2 * 4096**3


def test_counters__a_multiply_add_is_two_flop() -> None:
    operation = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
    values = {"dram__bytes_read.sum": 1.0, "dram__bytes_write.sum": 2.0, "gpu__time_duration.sum": 3.0}
    values |= {operation.format("ffma"): 100.0, operation.format("fadd"): 10.0, operation.format("fmul"): 1.0}
    kernel = ncu.CountedKernel(name="k", values=values)
    assert kernel.counters("fp32").work_flop == 211
    assert kernel.counters("fp16").work_flop is None
    assert kernel.counters(None).work_flop is None


def test_grouped__kernels_belong_to_the_mark_before_them() -> None:
    names = ["before", ncu.MARK, "a", "b", ncu.MARK, ncu.MARK, "c"]
    groups = ncu.grouped(ncu.CountedKernel(name=name, values={}) for name in names)
    assert [[one.name for one in group] for group in groups] == [["a", "b"], [], ["c"]]
