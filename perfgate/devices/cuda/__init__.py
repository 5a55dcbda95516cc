"""CUDA devices: the only room that imports pycuda and pynvml."""
