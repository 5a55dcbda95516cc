"""perfgate in pytest: the fixture ``gpu_benchmark``, its options, and pytests that are launches."""
