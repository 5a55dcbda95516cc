"""Processes that the tests of documents start, kill and let race: `python document_writer.py VERB PATH ...`."""

import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perfgate.core.baseline import Baseline
from perfgate.errors import OutputError
from perfgate.storage.baselines import update_baseline
from perfgate.storage.documents import write_run
from tests.factories import make_baseline, make_run, make_session


def write_for_ever(path: Path) -> None:
    """Write runs of different sizes in turn until killed; says when the first is complete."""
    runs = [make_run({"launch.gap": [1e-6 * (size + 1)] * (40 * size + 1)}) for size in range(3)]
    number = 0
    while True:
        write_run(path, runs[number % len(runs)])
        if number == 0:
            _say("ready")
        number += 1


def update_for_ever(path: Path) -> None:
    """Add sessions to a baseline until killed, naming each chip once it is stored."""
    number = 0
    while True:
        _add(path, f"{number:08x}")
        _say(f"{number:08x}")
        number += 1


def add_sessions(path: Path, first: str, count: str) -> None:
    """Add ``count`` sessions of chips numbered from ``first``."""
    for number in range(int(first), int(first) + int(count)):
        _add(path, f"{number:08x}")


def write_without_room(path: Path) -> None:
    """Write a run where files may not grow beyond 1 kB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write_run(path, make_run({"launch.gap": [1e-6] * 3}))
    except OutputError as error:
        _say(str(error))


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _add(path: Path, chip: str) -> None:
    session = make_session({"launch.gap": 1e-6}, chip=chip)

    def change(before: Baseline | None) -> Baseline:
        # The newest few only: the file stays small while the test is long.
        return make_baseline(*(before.sessions if before else ())[-40:], session)

    update_baseline(path, change)


if __name__ == "__main__":
    _, verb, target, *rest = sys.argv
    verbs = {verb.__name__: verb for verb in (write_for_ever, update_for_ever, add_sessions, write_without_room)}
    verbs[verb](Path(target), *rest)
