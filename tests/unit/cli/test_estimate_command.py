"""``perfgate estimate`` and ``perfgate roofline``: what a person types, what comes back, what is refused."""

import json
from pathlib import Path

import pytest

from perfgate.cli.main import run
from perfgate.cli.quantities import parse_size, parse_time_s
from perfgate.storage.documents import write_run
from tests.unit.report.roofline_reports import make_session


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    write_run(path, make_session())
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        "gemm --m 4096 --n 4096 --k 4096",
        "gemm --m 4Ki --n 4Ki --k 4Ki --dtype fp8 --out-dtype bf16 --beta --batch 2 --tile 128 128 --time 1ms",
        "grouped-gemm --n 2048 --k 7168 --expert-tokens 100,0,25",
        "grouped-gemm --n 2048 --k 7168 --tokens 4096 --experts 64 --top-k 6",
        "attention-prefill --heads 32 --queries 4096 --causal --kv-heads 8",
        "attention-decode --heads 32 --kv-heads 8 --context 32768 --batch 64",
        "attention-decode --heads 128 --context 32768 --latent 512 64",
        "elementwise --count 256Mi --reads 2",
        "reduction --count 256Mi --dtype fp32",
        "softmax --rows 4096 --columns 4096 --algorithm safe",
        "layernorm --rows 4096 --columns 4096 --rms --saves-statistics",
        "conv2d --channels 64 --height 56 --width 56 --out-channels 64 --padding 1",
        "access --count 256Mi --pattern stride --stride 4",
        "serial --step shuffle=5 --step add",
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_estimate__of_each_kind_on_two_machines(
    arguments: str, form: str, run_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The small session has measured roofs for FP32 and BF16; other types come from the datasheet.
    options = ["--gpu", "H200", "--run", str(run_file)] + (["--json"] if form == "json" else [])
    assert run(["estimate", *arguments.split(), *options]) == 0
    out = capsys.readouterr().out
    kind = arguments.split(maxsplit=1)[0]
    if form == "json":
        document = json.loads(out)
        assert [one["kind"] for one in document["predictions"]] == [kind, kind]
        assert all(one["time_s"] > 0 for one in document["predictions"])
    else:
        assert out.startswith(kind)
        assert "predicted time" in out


def test_estimate__the_documents_example(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--m", "2048", "--n", "2048", "--k", "2048"]
    code = run(["estimate", "gemm", *sizes, "--dtype", "fp32", "--time", "1ms", "--gpu", "H200"])
    out = capsys.readouterr().out
    assert code == 0
    assert "50331648 bytes" in out
    assert "50.3 GB/s" in out
    assert "17.2 TFLOP/s" in out


@pytest.mark.parametrize("link", ["transfer --size 100MB --copies 3", "collective --size 1GiB --ranks 8"])
def test_estimate__over_links_side_by_side(link: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", *link.split(), "--link", "nvlink5", "--link", "ib-ndr"]) == 0
    out = capsys.readouterr().out
    assert "NVLink 5" in out
    assert "InfiniBand NDR" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("gemm --m 8 --n 8 --k 8", "no machine is named"),
        ("gemm --m 8 --n 8 --k 8 --gpu A100", "did you mean"),
        ("gemm --m 0 --n 8 --k 8 --gpu H200", "m must be a positive whole number"),
        ("gemm --m -4 --n 8 --k 8 --gpu H200", "is not a size"),
        ("gemm --m 8 --n 8 --k 8 --dtype half --gpu H200", "unknown data type 'half'"),
        ("gemm --m 8 --n 8 --k 8 --dtype fp8 --gpu NVIDIA_A30", "no GPU named"),
        ("gemm --m 8 --n 8 --k 8 --dtype fp8 --gpu A30", "no FP8 tensor peak is known"),
        ("gemm --m 8 --n 8 --k 8 --time 5 --gpu H200", "with its unit"),
        ("gemm --m 8 --n 8 --k 8 --run missing.json", "missing.json"),
        ("grouped-gemm --n 8 --k 8 --gpu H200", "either --expert-tokens"),
        ("grouped-gemm --n 8 --k 8 --expert-tokens 3,x --gpu H200", "not a list of whole numbers"),
        ("serial --step shuffle=x --gpu H200", "not a whole number"),
        ("serial --step shuffl --gpu H200", "did you mean shuffle"),
        ("serial --step shuffle --gpu gb300", "clock of NVIDIA GB300 is unknown"),
        ("transfer --size 8", "no link is named"),
        ("transfer --size 8 --link nvlink9", "no link named"),
        ("collective --size 8 --ranks 1 --link nvlink5", "at least 2 ranks"),
    ],
)
def test_estimate__refuses_with_a_reason(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", *arguments.split()]) in (2, 3)
    assert message in " ".join(capsys.readouterr().err.split())


def test_roofline__of_a_run_writes_text_pictures_and_page(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: tmp_path / f"roofline.{kind}" for kind in ("svg", "png", "html")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    assert run(["roofline", "--run", str(run_file), *options]) == 0
    assert "BF16 tensor" in capsys.readouterr().out
    assert files["svg"].read_text(encoding="utf-8").count("<svg") == 1
    assert files["png"].read_bytes()[:4] == b"\x89PNG"
    assert "<!doctype html>" in files["html"].read_text(encoding="utf-8")


def test_roofline__of_gpus_shows_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--gpu", "H200", "--gpu", "L40"]) == 0
    out = capsys.readouterr().out
    assert "NVIDIA H200 datasheet" in out
    assert "from general knowledge or implied: sm_clock_hz" in out


def test_roofline__as_json(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--run", str(run_file), "--gpu", "B200", "--json"]) == 0
    machines = json.loads(capsys.readouterr().out)["machines"]
    assert [one["roofs"]["gpu_name"] for one in machines] == ["NVIDIA H200", "NVIDIA B200"]
    assert {one["id"] for one in machines[0]["cases"]} >= {"launch.gap", "gemm.fp32[n=4096]"}


def test_roofline__latencies(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--latencies", "--run", str(run_file)]) == 0
    assert "warp shuffle" in capsys.readouterr().out
    assert run(["roofline", "--latencies", "--gpu", "gb300"]) == 2


def test_roofline__refuses_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline"]) == 2
    assert "no machine is named" in capsys.readouterr().err
    assert run(["roofline", "--gpu", "H200", "--svg", str(tmp_path / "no" / "where.svg")]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("4Ki", 4096), ("1GiB", 2**30), ("100MB", 10**8), ("1.5k", 1500), ("0", 0), (" 2 T ", 2 * 10**12)],
)
def test_parse_size__reads_decimal_and_binary(text: str, value: int) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e6", "0.3Ki", "4096x", "nan", "1_000", "1 GB/s"])
def test_parse_size__refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|whole"):
        parse_size(text)


@pytest.mark.parametrize(("text", "value"), [("1ms", 1e-3), ("143.2us", 143.2e-6), ("2 s", 2.0), ("5µs", 5e-6)])
def test_parse_time__reads_units(text: str, value: float) -> None:
    assert parse_time_s(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "0ms", "-1ms", "inf s", "1min", ""])
def test_parse_time__refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time_s(text)
