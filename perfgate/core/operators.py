"""Operators other than products and attention: elementwise, reduction, softmax, normalisation, convolution.

All but convolution stay left of every ridge point: their intensity does not grow with their size.
"""

from perfgate.core.case import Work
from perfgate.core.caveat import Caveat
from perfgate.core.estimate import (
    checked_count,
    checked_dtype,
    checked_sizes,
    matrix_pipe,
    prediction,
    vector_pipe,
)
from perfgate.core.peaks import element_bytes
from perfgate.core.prediction import Prediction, Threshold
from perfgate.core.roofs import Roofs
from perfgate.core.tiling import best_tiling, wave_caveats
from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum

_NEVER = (
    Threshold(symbol="any size", size=None, meaning="compute-bound: never, the intensity does not grow with size"),
)


class SoftmaxAlgorithm(StrEnum):
    """How often a softmax moves its elements (Milakov and Gimelshein, arXiv 1805.02867)."""

    ON_CHIP = "on-chip"  # a row fits registers or shared memory: read once, write once
    ONLINE = "online"  # maximum and sum in one pass, then normalise: two reads, one write
    SAFE = "safe"  # maximum, sum, normalise: three reads, one write


class Normalisation(StrEnum):
    """Which normalisation of a row."""

    LAYER = "layernorm"
    RMS = "rmsnorm"


def elementwise_work(count: int, *, dtype: str, reads: int = 1, writes: int = 1, flop_per_element: int = 1) -> Work:
    """Return the work of an operation on each of ``count`` elements: s N (reads + writes) bytes.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    checked_sizes(count=count, reads=reads, writes=writes, flop_per_element=flop_per_element)
    pipe = vector_pipe(dtype)
    array_bytes = element_bytes(count, dtype)
    return Work(
        work_flop=count * flop_per_element,
        read_bytes=reads * array_bytes,
        write_bytes=writes * array_bytes,
        dtype=dtype,
        pipe=pipe,
    )


def elementwise(
    count: int, *, dtype: str, roofs: Roofs, reads: int = 1, writes: int = 1, flop_per_element: int = 1
) -> Prediction:
    """Predict an operation on each of ``count`` elements.

    Intensity in BF16: 1/4 for a unary operation, 1/6 for adding two arrays.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    work = elementwise_work(count, dtype=dtype, reads=reads, writes=writes, flop_per_element=flop_per_element)
    subject = f"{count} elements, {reads} read and {writes} written, {dtype.upper()}"
    return prediction(kind="elementwise", subject=subject, work=work, roofs=roofs, thresholds=_NEVER)


def reduction_work(count: int, *, dtype: str, partials: int = 1) -> Work:
    """Return the work of a sum or maximum: N - 1 FLOP, s N bytes read, partial results written.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    checked_sizes(count=count, partials=partials)
    pipe = vector_pipe(dtype)
    return Work(
        work_flop=count - 1,
        read_bytes=element_bytes(count, dtype),
        write_bytes=element_bytes(partials, dtype),
        dtype=dtype,
        pipe=pipe,
    )


def reduction(count: int, *, dtype: str, roofs: Roofs, partials: int = 1) -> Prediction:
    """Predict a sum or maximum of ``count`` elements.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    work = reduction_work(count, dtype=dtype, partials=partials)
    subject = f"{count} elements, {dtype.upper()}"
    return prediction(kind="reduction", subject=subject, work=work, roofs=roofs, thresholds=_NEVER)


_SOFTMAX_READS = {SoftmaxAlgorithm.ON_CHIP: 1, SoftmaxAlgorithm.ONLINE: 2, SoftmaxAlgorithm.SAFE: 3}


def softmax_work(rows: int, columns: int, *, dtype: str, algorithm: SoftmaxAlgorithm) -> Work:
    """Return the work of a softmax of each row: 2, 3 or 4 s N bytes.

    5 N FLOP: maximum, subtract, exponential, sum, scale.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    checked_sizes(rows=rows, columns=columns)
    pipe = vector_pipe(dtype)
    count = rows * columns
    return Work(
        work_flop=5 * count,
        read_bytes=_SOFTMAX_READS[algorithm] * element_bytes(count, dtype),
        write_bytes=element_bytes(count, dtype),
        dtype=dtype,
        pipe=pipe,
    )


def softmax(
    rows: int,
    columns: int,
    *,
    dtype: str,
    roofs: Roofs,
    algorithm: SoftmaxAlgorithm = SoftmaxAlgorithm.ONLINE,
) -> Prediction:
    """Predict a softmax of each row.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    work = softmax_work(rows, columns, dtype=dtype, algorithm=algorithm)
    count, moved = rows * columns, 1 + _SOFTMAX_READS[algorithm]
    subject = f"{rows} rows of {columns}, {algorithm} ({moved} N moved), {dtype.upper()}"
    return prediction(kind="softmax", subject=subject, work=work, roofs=roofs, exponentials=count, thresholds=_NEVER)


def layernorm_work(
    rows: int,
    columns: int,
    *,
    dtype: str,
    normalisation: Normalisation = Normalisation.LAYER,
    saves_statistics: bool = False,
) -> Work:
    """Return the work of a normalisation of each row.

    LayerNorm 8 N FLOP (mean N, variance 3 N, normalise 2 N, scale and shift 2 N), 2 s N + 2 s D bytes and
    8 a row where mean and deviation are kept; RMSNorm 4 N FLOP, 2 s N + s D bytes and 4 a row.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    checked_sizes(rows=rows, columns=columns)
    pipe = vector_pipe(dtype)
    flop, parameters = {Normalisation.LAYER: (8, 2), Normalisation.RMS: (4, 1)}[normalisation]
    count = rows * columns
    return Work(
        work_flop=flop * count,
        read_bytes=element_bytes(count, dtype) + parameters * element_bytes(columns, dtype),
        write_bytes=element_bytes(count, dtype) + (4 * parameters * rows if saves_statistics else 0),
        dtype=dtype,
        pipe=pipe,
    )


def layernorm(
    rows: int,
    columns: int,
    *,
    dtype: str,
    roofs: Roofs,
    normalisation: Normalisation = Normalisation.LAYER,
    saves_statistics: bool = False,
) -> Prediction:
    """Predict a normalisation of each row, kept on chip between its passes.

    Raises:
        ConfigurationError: a size is not positive or the type is unknown.
    """
    work = layernorm_work(rows, columns, dtype=dtype, normalisation=normalisation, saves_statistics=saves_statistics)
    subject = f"{normalisation}, {rows} rows of {columns}, {dtype.upper()}"
    return prediction(kind="layernorm", subject=subject, work=work, roofs=roofs, thresholds=_NEVER)


def conv2d(
    *,
    batch: int,
    channels: int,
    height: int,
    width: int,
    out_channels: int,
    kernel: int,
    dtype: str,
    roofs: Roofs,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    im2col: bool = False,
) -> Prediction:
    """Predict a 2-D convolution as an implicit GEMM of M = B Ho Wo, N = Cout / g, K = (Cin / g) k k.

    FLOP 2 B Cout Ho Wo (Cin / g) k k; bytes s (B Cin H W + Cout (Cin / g) k k + B Cout Ho Wo), and
    2 s B Ho Wo Cin k k more where patches are written out first (im2col).

    Raises:
        ConfigurationError: a size is not positive, the kernel exceeds the padded image, groups do not
            divide the channels, or a type is unknown or lacking.
    """
    checked_sizes(batch=batch, channels=channels, height=height, width=width, out_channels=out_channels)
    checked_sizes(kernel=kernel, stride=stride, groups=groups)
    checked_count("padding", padding, least=0)
    if channels % groups or out_channels % groups:
        raise ConfigurationError(
            f"groups ({groups}) must divide channels ({channels}) and out-channels ({out_channels})"
        )
    out_height = (height + 2 * padding - kernel) // stride + 1
    out_width = (width + 2 * padding - kernel) // stride + 1
    if out_height < 1 or out_width < 1:
        raise ConfigurationError(f"a kernel of {kernel} does not fit {height} x {width} padded by {padding}")
    checked_dtype(dtype)
    pipe = matrix_pipe(dtype, roofs)
    patch = channels // groups * kernel * kernel
    pixels = batch * out_height * out_width
    patches_bytes = element_bytes(pixels * patch * groups, dtype) if im2col else 0
    work = Work(
        work_flop=2 * pixels * out_channels * patch,
        read_bytes=element_bytes(batch * channels * height * width, dtype)
        + element_bytes(out_channels * patch, dtype)
        + patches_bytes,
        write_bytes=element_bytes(pixels * out_channels, dtype) + patches_bytes,
        dtype=dtype,
        pipe=pipe,
    )
    tiling = best_tiling([(pixels, out_channels // groups)] * groups, patch, work=work, roofs=roofs)
    winograd = Caveat(
        code="algorithm",
        message="counted as a direct convolution: Winograd and FFT do less work, and may seem to exceed the roof",
    )
    shape = f"{batch} x {channels} x {height} x {width}, {out_channels} kernels of {kernel} x {kernel}"
    return prediction(
        kind="conv2d",
        subject=f"{shape}, stride {stride}, {'im2col' if im2col else 'implicit GEMM'}, {dtype.upper()}",
        work=work,
        roofs=roofs,
        waves=tiling.waves,
        terms=tiling.terms,
        caveats=(*wave_caveats(tiling.waves), winograd),
    )
