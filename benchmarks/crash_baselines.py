"""Kill updates of one baseline at random moments: `python benchmarks/crash_baselines.py --kills 300 --seed 1`.

Four processes accept runs into one folder at the same time, as four runners would. In every round one of
them is killed (SIGKILL) at a random moment. After each kill the file is read and validated: it has to be
whole, and has to hold every session that a process had been told was stored. At the end nothing but the
file and its lock may be left. Prints a summary, and exits with 1 at the first session that is lost.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from perfgate.core.run import Block, CaseLaunch, Launch, Run
from perfgate.storage.documents import read_baseline, read_run
from perfgate.storage.files import LOCK_NAME
from perfgate.workflow.accepting import Terms, accepted, refuse_implausible

WRITERS = 4
# The session of a chip replaces the one before, so that the file stays as small as a real one.
CHIPS_PER_WRITER = 12
_STORED = "stored"
_FIRST = datetime(2020, 1, 1, tzinfo=timezone.utc)


def write_for_ever(recording: Path, folder: Path, generation: int) -> None:
    """Accept runs until killed; name each session once it is stored."""
    run = _small(read_run(recording))
    number = 0
    while True:
        chip = f"{generation % WRITERS:04x}{number % CHIPS_PER_WRITER:04x}"
        # Later than all of the generation before, and like no other session.
        moment = _FIRST + timedelta(hours=generation, seconds=number)
        own = _scaled(run, (1 + generation * 1e-5, 1 + number * 1e-5))
        own = replace(own, created_utc=f"{moment:%Y-%m-%dT%H:%M:%SZ}", gpu=replace(run.gpu, chip=chip))
        accepted(own, folder, Terms(reason=f"generation {generation}", replaces=True, force="a rehearsal"))
        sys.stdout.write(f"{_STORED} {chip} {own.created_utc}\n")
        sys.stdout.flush()
        number += 1


def _small(run: Run) -> Run:
    """Return a run with two of its cases: more would only slow the updates down."""
    ids = tuple(run.cases)[:2]
    launches = (replace(one, cases={key: one.cases[key] for key in ids}) for one in run.launches)
    return replace(run, cases={key: run.cases[key] for key in ids}, launches=tuple(launches))


def _scaled(run: Run, factors: Sequence[float]) -> Run:
    """Return a run whose cases are slower by a factor each."""

    def block(one: Block, factor: float) -> Block:
        return replace(one, times_s=tuple(time_s * factor for time_s in one.times_s))

    def case(one: CaseLaunch, factor: float) -> CaseLaunch:
        return replace(one, blocks=tuple(block(each, factor) for each in one.blocks))

    def launch(one: Launch) -> Launch:
        return replace(one, cases={key: case(one.cases[key], by) for key, by in zip(run.cases, factors, strict=True)})

    return replace(run, launches=tuple(map(launch, run.launches)))


class Writer:
    """One process that updates, and what it said it stored."""

    def __init__(self, recording: Path, folder: Path, number: int) -> None:
        command = [sys.executable, __file__, "--writer", str(number), "--recording", str(recording), str(folder)]
        # Read by its name, not by this descriptor: the writer shares its position.
        self._words = folder / f".{number}.words"
        with self._words.open("w") as words:
            self.process = subprocess.Popen(command, stdout=words, text=True)

    def stored(self) -> dict[str, str]:
        """Return the time of the newest session of each chip that was named; a half-written line is none."""
        text = self._words.read_text(encoding="utf-8")
        lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return {chip: moment for word, chip, moment in lines if word == _STORED}

    def kill(self) -> dict[str, str]:
        """End the process and return what it had said."""
        self.process.kill()
        self.process.wait()
        said = self.stored()
        self._words.unlink()
        return said


def crash(recording: Path, folder: Path, kills: int, seed: int) -> Counter[str]:
    """Run the writers and kill them; return what was counted.

    Raises:
        AssertionError: a session was lost, or something was left behind.
        PerfgateError: the file was broken.
    """
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    promised: dict[str, str] = {}
    generations = list(range(WRITERS))
    writers = [Writer(recording, folder, number) for number in generations]
    try:
        while counts["kills"] < kills:
            time.sleep(chance.uniform(0.02, 0.5))
            place = chance.randrange(WRITERS)
            victim = writers[place]
            if not victim.stored() and victim.process.poll() is None and chance.random() < 0.9:
                continue  # still starting; now and then one dies that early too
            assert victim.process.poll() is None, "a writer ended by itself"
            said = victim.kill()
            counts["kills"] += 1
            counts["stored"] += len(said)
            counts["partial files left"] += sum(path.suffix == ".part" for path in folder.iterdir())
            promised |= said
            # The same place modulo WRITERS, hence the same chips.
            generations[place] += WRITERS
            writers[place] = Writer(recording, folder, generations[place])
            # What the living have said is promised too; it was said before the file is read.
            living = {chip: moment for one in writers for chip, moment in one.stored().items()}
            counts["checked"] += _check(folder, promised | living)
    finally:
        for writer in writers:
            promised |= writer.kill()
    _check(folder, promised)
    return counts


def _check(folder: Path, said: dict[str, str]) -> int:
    files = [path for path in folder.iterdir() if path.suffix == ".json"]
    if not files:
        assert not said, "sessions were stored, and there is no file"
        return 0
    (path,) = files
    baseline = read_baseline(path)
    refuse_implausible(baseline, str(path))
    newest = {session.chip: session.provenance.recorded_utc for session in baseline.sessions}
    lost = {chip: moment for chip, moment in said.items() if newest.get(chip, "") < moment}
    assert not lost, f"sessions were lost: {lost}"
    return len(said)


def main() -> int:
    """Crash from a recorded session; see the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the baseline; a temporary one by default")
    parser.add_argument("--recording", type=Path, default=Path("tests/data/run-1.json"), help="run document")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.writer is not None:
        write_for_ever(arguments.recording, arguments.folder, arguments.writer)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        counts = crash(arguments.recording, folder, arguments.kills, arguments.seed)
        left = sorted(path.name for path in folder.iterdir() if path.suffix not in (".json", ".part"))
    assert left == [LOCK_NAME], f"left behind: {left}"
    took_s = time.monotonic() - began_s
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"in {took_s:.0f} s: nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
