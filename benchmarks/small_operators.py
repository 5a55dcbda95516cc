"""Runs the operators at small and odd shapes on the GPU at hand, each verified: short enough for a checker of memory.

    compute-sanitizer --tool memcheck python -m benchmarks.small_operators

The exit code is the number of cases that are wrong.
"""

from dataclasses import replace

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification
from perfgate.devices.cuda.session import CudaSession, opened_session
from perfgate.resources import cache_folder
from perfgate.suite import attention_decode, normalization
from perfgate.suite.attention_decode import attention_decode_case
from perfgate.suite.elementwise import ADD, GELU, elementwise_case
from perfgate.suite.normalization import normalization_case
from perfgate.suite.reduction import sum_case


def small_cases(gpu: Gpu) -> list[Case]:
    """Shapes where vectors, tiles, rows and steps do not come out even, each in one buffer set."""
    tiny = replace(gpu, l2_bytes=1)
    counts = (1, 7, 8, 9, 4095, 4096, 4099, 8 * 256 * 2 * 3 + 5)
    cases = [elementwise_case(tiny, one, count) for one in (GELU, ADD) for count in counts]
    cases += [sum_case(tiny, count) for count in (2, 3, 5, 1023, 32768, 32769, 32768 * 4 + 7, 300_001)]
    shapes = ((1, 2), (3, 1), (5, 7), (4, 8), (33, 9), (7, 255), (3, 1024), (9, 1025), (5, 4099), (4, 8192), (6, 8191))
    cases += [normalization_case(tiny, name, *shape) for name in normalization.NAMES for shape in shapes]
    for block in (64, 128, 512):
        knobs = normalization.Knobs(block=block, blocks_per_sm=1)
        cases += [normalization_case(tiny, name, 100, 501, knobs) for name in normalization.NAMES]
    decodes = ((1, 1, 1, 1), (1, 4, 1, 17), (2, 8, 2, 16), (2, 8, 1, 255), (3, 6, 2, 1000), (1, 7, 1, 4099))
    for batch, heads, kv_heads, context in decodes:
        shape = attention_decode.Shape(batch=batch, heads=heads, kv_heads=kv_heads, context=context)
        cases.append(attention_decode_case(tiny, shape))
    return cases


def checked(session: CudaSession, case: Case) -> Verification:
    """Run every buffer set of a case once on poisoned outputs and verify it."""
    session.add_case(case)
    with session.open_case(case.id) as opened:
        opened.poison()
        opened.time_batch(executions=opened.sets, samples=1)
        return opened.verify()


def main() -> None:
    """Run all and print what each was off by."""
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        return Suite(name="small", cases=())

    wrong = 0
    with opened_session("", suite, cache_folder()) as session:
        for case in small_cases(found[0]):
            result = checked(session, case)
            wrong += not result.passed
            verdict = "right" if result.passed else "WRONG"
            print(f"{verdict} {case.id} {result.error:.3g} of {result.tolerance:.3g} {result.detail}", flush=True)
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
