"""perfgate: a CI performance-regression gate for NVIDIA GPUs."""

__version__ = "0.1.0"

__all__ = ["__version__"]
