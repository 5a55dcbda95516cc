"""Which cases a pattern means: the one meaning of a glob over case ids, everywhere.

Only ``*`` (any text) and ``?`` (one character) are special. Brackets are not: they are part of
every id (``bandwidth.copy[bytes=4GiB]``), which the shell's rules would read as a set of characters.
A pattern without brackets also means the ids that it names at any size: ``bandwidth.copy`` is
``bandwidth.copy[bytes=4GiB]`` and ``bandwidth.copy[bytes=64MiB]``.
"""

import difflib
import functools
import re
from collections.abc import Iterable


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    text = "".join({"*": ".*", "?": "."}.get(one, re.escape(one)) for one in pattern)
    axes = "" if "[" in pattern else r"(\[.*\])?"
    return re.compile(text + axes, re.DOTALL)


def is_match(case_id: str, pattern: str) -> bool:
    """Tell whether a glob means this case."""
    return _compiled(pattern).fullmatch(case_id) is not None


def matching(case_ids: Iterable[str], pattern: str) -> tuple[str, ...]:
    """Return the ids that a glob means, in the order given."""
    return tuple(one for one in case_ids if is_match(one, pattern))


def near_names(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return the known names most like a mistyped one, best first; with and without their axes."""
    ids = tuple(known)
    candidates = {one.split("[", 1)[0]: one for one in reversed(ids)} | {one: one for one in ids}
    wanted = name.replace("*", "").replace("?", "")
    close = difflib.get_close_matches(wanted, candidates, n=2 * count, cutoff=0.5)
    return tuple(dict.fromkeys(candidates[one] for one in close))[:count]
