"""What tests of whole commands share: a recording of an H200, its baseline, and a way to call perfgate.

After every test all that it produced is searched for what no document, log or comment may tell.
"""

import getpass
import gzip
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from perfgate.cli.main import run as run_command
from perfgate.core.run import Run
from perfgate.storage.documents import read_run

# One run of six launches on one H200, as `perfgate run` wrote it.
RECORDING = Path(__file__).parent.parent / "data" / "h200-run.json.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ending]

# A UUID as NVML writes it; what stands for one in a message is "GPU-<uuid>" or "GPU-withheld".
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}", re.IGNORECASE)
# Clones, installations, and what the action's steps hand to each other.
_SURROUNDINGS = {".git", "site-packages", "temp"}
_REPOSITORY = str(Path(__file__).resolve().parents[2])


def private_words(text: str, *places: str) -> list[str]:
    """Return the names of host and user, the UUIDs and the given places that a text holds."""
    # Short names, such as root, are words of their own.
    names = [name for name in (socket.gethostname(), getpass.getuser()) if len(name) > 5]
    found = [word for word in (*names, str(Path.home()) + "/", *places) if word in text]
    return found + [match[0] for match in _UUID.finditer(text)]


@pytest.fixture(autouse=True)
def _nothing_private(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Search the documents and comments that a test left."""
    world = request.getfixturevalue("world") if "world" in request.fixturenames else None
    yield
    for path in sorted(tmp_path.rglob("*")):
        if path.is_symlink() or not path.is_file() or _SURROUNDINGS & set(path.parts):
            continue
        if not ({"perfgate-results", "baselines"} & set(path.parts) or path.suffix in (".json", ".gz")):
            continue
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            try:
                data = gzip.decompress(data)
            except (EOFError, OSError):
                continue
        found = private_words(data.decode(errors="replace"), str(tmp_path), _REPOSITORY)
        assert not found, f"{path} holds {found}"
    for body in world.github.bodies() if world is not None else ():
        assert not private_words(body, str(tmp_path), _REPOSITORY), body


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def perfgate(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls the command line in this process, in ``workplace``; its launches are processes of their own."""

    def call(*arguments: object) -> Ending:
        capsys.readouterr()
        code = run_command([str(one) for one in arguments])
        shown = capsys.readouterr()
        told = private_words(shown.out + shown.err)
        assert not told, f"the log holds {told}: {shown}"
        return Ending(code=code, out=shown.out, err=shown.err)

    return call


@pytest.fixture(scope="session")
def recording() -> Path:
    return RECORDING


@pytest.fixture(scope="session")
def device() -> str:
    return f"recorded:{RECORDING}"


@pytest.fixture(scope="session")
def recorded_run() -> Run:
    return read_run(RECORDING)


@pytest.fixture(scope="session")
def baselines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the baseline of the recording, of twelve launches; made once for all test processes.

    Tests read it; who changes a baseline makes a copy.
    """
    shared = tmp_path_factory.getbasetemp().parent
    folder = shared / "h200-baselines"
    with FileLock(shared / "h200-baselines.lock"):
        if not folder.exists():
            made = shared / "h200-baselines-in-the-making"
            arguments = ["baseline", "update", "--device", f"recorded:{RECORDING}", "--seed", "12"]
            assert run_command([*arguments, "--baseline", str(made), "--reason", "first session", "--quiet"]) == 0
            made.rename(folder)
    return folder


def started_command(
    *arguments: object,
    cwd: Path,
    environment: Mapping[str, str],
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> "subprocess.Popen[str]":
    """Start ``python -m perfgate`` as a process of its own."""
    command = [sys.executable, "-m", "perfgate", *(str(one) for one in arguments)]
    return subprocess.Popen(command, cwd=cwd, env=dict(environment), stdout=stdout, stderr=stderr, text=True)
