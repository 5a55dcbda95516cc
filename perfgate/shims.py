"""What Python 3.10 lacks, named in one place; gone when 3.10 is."""

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
    from typing import assert_never

    import tomllib
else:  # pragma: no cover - exercised by the 3.10 leg of the matrix
    from enum import Enum

    import tomli as tomllib
    from typing_extensions import assert_never

    class StrEnum(str, Enum):
        """An enumeration whose members are their own text."""

        def __str__(self) -> str:
            return str(self.value)


__all__ = ["StrEnum", "assert_never", "tomllib"]
