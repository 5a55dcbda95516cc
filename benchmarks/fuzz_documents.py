"""Feed damaged documents to the readers: `python benchmarks/fuzz_documents.py FILE... --count 100000 --seed 1`.

The files, which perfgate wrote, are damaged in their bytes (flipped, cut, doubled, spliced) and in their
values (replaced, removed, renamed, moved); most of the time they are cut down first, so that the damage is
where it matters. Whatever comes of it, a reader either returns a document that it would write and read
again, or raises DocumentError; and the command that is given it exits with 0 or 3, without a traceback and
without a character that a terminal obeys.
"""

import argparse
import contextlib
import copy
import gzip
import io
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.cli.main import run as run_command
from perfgate.errors import DocumentError
from perfgate.storage.documents import (
    parse_baseline,
    parse_report,
    parse_run,
    render_baseline_json,
    render_report_json,
    render_run_json,
)

PARSERS: Mapping[bytes, tuple[Callable[[bytes, str], Any], Callable[[Any], str]]] = {
    b"perfgate.run/": (parse_run, render_run_json),
    b"perfgate.baseline/": (parse_baseline, render_baseline_json),
    b"perfgate.report/": (parse_report, render_report_json),
}

NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 0.0, -0.0, 1e-320, 1e308, -1e308, "", " ", "\n", "\t",
    "a" * 300, "GPU-5a1b2c3d-0123-4567-89ab-0123456789ab", "/home/alice/x", "é", "\u2028", "\ufeff", "😀",
    "perfgate.run/1", "perfgate.baseline/99", "1", "NaN", "5%", "~0/~1", [], {}, [[]], [None], {"": ""}, {"/~": {}},
    [1, 2.5], [1e-6, "x"], {"format": "perfgate.run/1"},
)  # fmt: skip
NASTY_BYTES = (b"", b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"{", b"]", b",", b"NaN", b"1e999", b"-", b"\\u0000",
               b"\\ud800", b"\\", b"9" * 400, b"[" * 2000, b'{"a":' * 500)  # fmt: skip


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return data with one to four places damaged."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 1, 1, 4, 64, 1000)))
        piece = chance.choice((*NASTY_BYTES, data[start:end] * 2, bytes([chance.randrange(256)])))
        data = data[:start] + piece + data[end:]
    return data


def damaged_value(document: Any, chance: random.Random) -> Any:
    """Return a JSON value with one to four places damaged; it may be the one that was given."""
    for _ in range(chance.randint(1, 4)):
        places = list(_places(document))
        if not places:
            break
        holder, key = chance.choice(places)
        match chance.randrange(4):
            case 0:
                holder[key] = copy.deepcopy(chance.choice(NASTY_VALUES))
            case 1:
                del holder[key]
            case 2 if isinstance(holder, dict):
                holder[chance.choice(("", "x", "/", "\x1b", "__class__", "a" * 250))] = holder.pop(key)
            case _:
                other, other_key = chance.choice(places)
                holder[key] = copy.deepcopy(other[other_key])
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with every key or index in it; long arrays by their ends only."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        keys: Sequence[Any] = list(value)
    elif isinstance(value, list):
        keys = sorted({*range(min(3, len(value))), *range(max(0, len(value) - 2), len(value))})
    else:
        return found
    for key in keys:
        found.append((value, key))
        found.extend(_places(value[key]))
    return found


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return a document damaged in bytes, in values, in its packing, or in two of them."""
    if chance.random() < 0.6:
        data = json.dumps(damaged_value(json.loads(data), chance)).encode()
    if chance.random() < 0.5:
        data = damaged_bytes(data, chance)
    if chance.random() < 0.1:
        packed = gzip.compress(data, 1)
        data = damaged_bytes(packed, chance) if chance.random() < 0.5 else packed
    return data


def cut_down(value: Any) -> Any:
    """Return a JSON value with two items of every array and two cases of every map of cases."""
    if isinstance(value, list):
        return [cut_down(item) for item in value[:2]]
    if isinstance(value, dict):
        kept = {name for name in value if "[" in name or "." in name}
        dropped = set(sorted(kept)[2:])
        return {name: cut_down(item) for name, item in value.items() if name not in dropped}
    return value


def fuzz(seeds: Sequence[bytes], count: int, seed: int, folder: Path) -> Counter[str]:
    """Read ``count`` damaged documents; return how many were read and refused, and the commands' exit codes.

    Args:
        seeds: whole documents.
        count: documents.
        seed: of the damage.
        folder: where documents are written for the commands.

    Raises:
        AssertionError: a reader raised something else, or returned what it would not write and read again,
            or a command ended in another way; the message holds the document.
    """
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    small = [json.dumps(cut_down(json.loads(one))).encode() for one in seeds]
    good = folder / "good.json"
    good.write_bytes(next(one for one in small if b"perfgate.baseline/" in one[:100]))
    for number in range(count):
        whole = chance.choice(small if chance.random() < 0.997 else seeds)
        data = damaged(whole, chance)
        outcomes[f"exit {_exit_code(data, folder / 'fuzzed.json', good, chance)}"] += 1
        # Its own reader most of the time: the others look no further than the format.
        own = [one for name, one in PARSERS.items() if name in whole[:100]]
        for parse, render in own if own and number % 10 else PARSERS.values():
            try:
                document = parse(data, "fuzzed")
            except DocumentError:
                outcomes["refused"] += 1
                continue
            except Exception as error:
                message = f"document {number}: {parse.__name__} raised {error!r} for {data[:2000]!r}"
                raise AssertionError(message) from error
            text = render(document)
            # Written texts are withheld and numbers of baselines rounded: the second writing must change nothing.
            assert render(parse(text.encode(), "written")) == text, data[:2000]
            outcomes["read"] += 1
    return outcomes


def _exit_code(data: bytes, path: Path, good: Path, chance: random.Random) -> int:
    path.write_bytes(data)
    commands = (("validate", path), ("show", path), ("diff", good, path), ("migrate", path))
    name, *places = chance.choice(commands)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = run_command(["baseline", str(name), *map(str, places)])
    text = shown.getvalue()
    assert code in (0, 3), f"baseline {name} exits {code} for {data[:2000]!r}: {text[-2000:]}"
    assert "Traceback" not in text, data[:2000]
    assert text.replace("\n", "").isprintable(), f"baseline {name} prints {text!r} for {data[:2000]!r}"
    return code


def main() -> int:
    """Fuzz from the documents given as files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=argparse.FileType("rb"), help="documents to damage")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    seeds = [file.read() for file in arguments.files]
    seeds = [gzip.decompress(seed) if seed.startswith(b"\x1f\x8b") else seed for seed in seeds]
    try:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            outcomes = fuzz(seeds, arguments.count, arguments.seed, Path(folder))
    except AssertionError:
        traceback.print_exc()
        return 1
    counts = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items()))
    print(f"{arguments.count} documents, seed {arguments.seed}, {time.monotonic() - began_s:.0f} s; {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
