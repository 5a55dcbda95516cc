"""What runs on a node: one measurement of one GPU as a command of its own, and its document as bytes.

Imported by the workers of the cluster; nothing here needs Ray.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from perfgate import __version__

# Of what a command said before it failed, the end is what tells why.
_LAST_CHARACTERS = 2000
# Between asking a command to end and ending it.
_GRACE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a worker is told.

    Attributes:
        arguments: of ``perfgate run``, without the file.
        timeout_s: longest measurement.
        variables: added to the environment of the command.
        baselines: files to sample by, by name: the node need not have them.
    """

    arguments: tuple[str, ...]
    timeout_s: float
    variables: dict[str, str] = field(default_factory=dict)
    baselines: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a worker sends back.

    Attributes:
        document: the run document, gzipped; None without one.
        failure: why there is none, or why it is not whole; None when all went well.
        exit_code: of the command; negative for a signal.
        duration_s: what the command took.
        perfgate_version: of the node.
    """

    document: bytes | None
    failure: str | None
    exit_code: int
    duration_s: float
    perfgate_version: str


def measured_here(order: Order) -> Delivery:
    """Run ``perfgate run`` on this node's GPU, the one that the cluster has made visible."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="perfgate-fleet-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "run.json.gz"
        arguments = [*order.arguments, *_written_baselines(Path(folder), order.baselines)]
        command = [sys.executable, "-m", "perfgate", "run", str(path), *arguments, "--quiet", "--no-color"]
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **order.variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            return _delivery(None, f"perfgate cannot be started: {error}", 1, began_s)
        try:
            _, said = process.communicate(timeout=order.timeout_s)
        except subprocess.TimeoutExpired:
            said = _ended(process)
            failure = f"it did not end within {order.timeout_s:g} s"
            return _delivery(_read(path), failure, process.returncode or -signal.SIGKILL, began_s)
        finally:
            _end(process)
        document = _read(path)
        why = None if process.returncode == 0 and document else _why(said, process.returncode)
        return _delivery(document, why, process.returncode, began_s)


def _written_baselines(folder: Path, baselines: dict[str, bytes]) -> list[str]:
    """Write the baselines that came along; return the arguments that name them."""
    if not baselines:
        return []
    place = folder / "baselines"
    place.mkdir()
    for name, content in baselines.items():
        (place / Path(name).name).write_bytes(content)
    return ["--baseline", str(place)]


def _delivery(document: bytes | None, failure: str | None, exit_code: int, began_s: float) -> Delivery:
    return Delivery(
        document=document,
        failure=failure,
        exit_code=exit_code,
        duration_s=time.monotonic() - began_s,
        perfgate_version=__version__,
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _why(said: str, exit_code: int) -> str:
    """Return the error that the command told, else the end of what it said."""
    lines = [line.removeprefix("perfgate: ") for line in said.splitlines() if line.startswith("perfgate: ")]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    text = told[-1] if told else said.strip()[-_LAST_CHARACTERS:]
    return f"{text or 'it said nothing'} (exit {exit_code})"


def _ended(process: "subprocess.Popen[str]") -> str:
    """Ask a command to end, so that it keeps what it has; end it where it does not."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_S)[1]
    except subprocess.TimeoutExpired:
        _end(process)
        return process.communicate()[1]


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
