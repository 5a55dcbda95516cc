"""How far each line of the L2 is: hits on first touch, and after the line has come to the near partition.

    python benchmarks/l2_partitions.py

One thread loads lines 4 KiB apart, each by itself between two readings of the SM's clock, three times over. A kernel
on all SMs wrote them whole before, so that every load is a hit. Behind docs/figures/latency.md.
"""

import tempfile
from pathlib import Path

import numpy as np

from perfgate.core.case import Case, Suite, Work
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.devices.cuda.session import opened_session
from perfgate.resources import cache_folder

LINES, STRIDE_BYTES, PASSES = 2048, 4096, 3
# Between the two groups of first touches.
FAR_CYCLES = 360
SOURCE = """
extern "C" __global__ void touch(const unsigned char* lines, unsigned int count, unsigned int stride,
                                 unsigned int passes, unsigned int* cycles) {
    for (unsigned int pass = 0; pass < passes; ++pass) {
        for (unsigned int i = 0; i < count; ++i) {
            unsigned long long begin, end, word;
            asm volatile("mov.u64 %0, %%clock64;\\n ld.global.cg.u64 %1, [%3];\\n xor.b64 %1, %1, %0;\\n"
                         "mov.u64 %2, %%clock64;"
                         : "=l"(begin), "=l"(word), "=l"(end)
                         : "l"(lines + (unsigned long long)i * stride)
                         : "memory");
            cycles[pass * count + i] = (unsigned int)(end - begin) + (word == 1);
        }
    }
}
"""


def touched(toolbox: Toolbox, source: Path) -> np.ndarray:
    """Return the cycles of every load, shape (passes, lines)."""
    lines, cycles = toolbox.buffer(LINES * STRIDE_BYTES), toolbox.buffer(4 * PASSES * LINES)
    words = np.uint64(lines.size_bytes // 4)
    fill = toolbox.kernel("data.cu", "fill_word")
    fill.bind(grid=(1024, 1, 1), block=(256, 1, 1), args=(lines, words, np.uint32(7)))()
    arguments = (lines, np.uint32(LINES), np.uint32(STRIDE_BYTES), np.uint32(PASSES), cycles)
    toolbox.kernel(str(source), "touch").bind(grid=(1, 1, 1), block=(1, 1, 1), args=arguments)()
    return toolbox.read(cycles, np.uint32, PASSES * LINES).reshape(PASSES, LINES)


def main() -> None:
    """Print the two groups of first touches, and what they take later."""
    cycles: list[np.ndarray] = []

    def prepared(toolbox: Toolbox) -> Workload:
        # All of it, since the device's own clock times it and not events.
        cycles.append(touched(toolbox, source))
        right = Verification(passed=True, error=0.0, tolerance=0.0, detail="")
        return Workload(executions=(lambda: None,), poison=lambda: None, verify=lambda: right)

    case = Case(id="l2.touch", version=1, work=Work(footprint_bytes=LINES * STRIDE_BYTES), prepare=prepared)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "touch.cu"
        source.write_text(SOURCE, encoding="utf-8")
        suite = Suite(name="touch", cases=(case,))
        with opened_session("", lambda _: suite, cache_folder()) as session, session.open_case(case.id):
            print(session.toolbox.gpu.name, session.toolbox.gpu.board_part_number)
    (found,) = cycles
    far = found[0] > FAR_CYCLES
    for name, group in (("near", ~far), ("far", far)):
        means = ", ".join(f"{one[group].mean():.0f}" for one in found)
        print(f"{name}: {group.mean():.0%} of the lines, mean cycles by pass: {means}")


if __name__ == "__main__":
    main()
