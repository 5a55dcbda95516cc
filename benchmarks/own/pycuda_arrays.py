"""Arrays of PyCUDA's for the suites beside this file: two of a size, the first one filled."""

import numpy as np


class Raw:
    """Single-precision numbers at an allocation of PyCUDA's, as frameworks show theirs."""

    def __init__(self, allocation, count):
        interface = {"shape": (count,), "typestr": "<f4", "data": (int(allocation), False), "version": 3}
        self.__cuda_array_interface__ = interface


class Pair:
    """A source, its values and a target."""

    def __init__(self, count):
        import pycuda.driver as cuda

        self.driver, self.count = cuda, count
        self.values = np.resize(np.random.default_rng(1).random(2**20, dtype=np.float32), count)
        self.source, self.target = cuda.mem_alloc(4 * count), cuda.mem_alloc(4 * count)
        cuda.memcpy_htod(self.source, self.values)

    def copy(self, stream):
        self.driver.memcpy_dtod_async(int(self.target), int(self.source), 4 * self.count, stream)

    @property
    def output(self):
        return Raw(self.target, self.count)

    def free(self):
        self.source.free()
        self.target.free()
