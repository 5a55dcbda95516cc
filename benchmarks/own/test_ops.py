"""The fixture gpu_benchmark on a GPU: some pass, and what is wrong, waits or is not there fails by name."""

import pytest

import perfgate.api as pg

torch = pytest.importorskip("torch")


@pytest.fixture
def on_stream(gpu_benchmark):
    with torch.cuda.stream(torch.cuda.ExternalStream(gpu_benchmark.stream.handle)):
        yield gpu_benchmark


@pytest.mark.parametrize("count", [2**24, 2**26])
def test_double(on_stream, count):
    x = torch.randn(count, device="cuda")
    out = torch.empty_like(x)
    work = pg.Work(read_bytes=4 * count, write_bytes=4 * count)
    on_stream(lambda: torch.mul(x, 2, out=out), work=work, outputs=[out], reference=lambda: x + x)


@pytest.mark.gpu_benchmark(graph=True)
def test_small_as_a_graph(on_stream):
    x = torch.randn(2**12, device="cuda")
    out = torch.empty_like(x)
    on_stream(lambda: torch.mul(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def test_wrong_output_fails(on_stream):
    x = torch.randn(2**22, device="cuda")
    out = torch.empty_like(x)
    on_stream(lambda: torch.mul(x, 2, out=out), outputs=[out], reference=lambda: x)


def test_synchronizing_fails(on_stream):
    x = torch.randn(2**22, device="cuda")
    on_stream(lambda: x.sum().item())


def test_without_a_gpu_still_passes():
    assert torch.tensor([1]).sum().item() == 1
