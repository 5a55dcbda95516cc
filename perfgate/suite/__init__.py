"""The built-in cases: which kernel, sizes, work and reference."""
