"""Evidence that the kernel killed a process for lack of memory: such a SIGKILL is told from others."""

from pathlib import Path


def memory_kill_count(root: Path = Path("/")) -> int | None:
    """Return how many processes near this one were killed for lack of memory so far; None if unknown.

    The counter of this process's control group, which its children inherit: ``oom_kill`` of
    ``memory.events`` (version 2) or ``memory.oom_control`` (version 1, kernel 4.13 and newer); else
    that of the whole machine in ``/proc/vmstat``. Compare two readings.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    for path in (*_group_counters(root), root / "proc/vmstat"):
        count = _counter(path)
        if count is not None:
            return count
    return None


def _group_counters(root: Path) -> tuple[Path, ...]:
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return ()
    mounted = root / "sys/fs/cgroup"
    found = []
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        # Inside a container the path may be the host's, and what is mounted the container's own group.
        if "memory" in controllers.split(","):
            folder, name = mounted / "memory", "memory.oom_control"
        elif hierarchy == "0":
            folder, name = mounted, "memory.events"
        else:
            continue
        found += [folder / path.lstrip("/") / name, folder / name]
    return tuple(found)


def _counter(path: Path) -> int | None:
    try:
        words = (line.split() for line in path.read_text("utf-8").splitlines())
        return next((int(word[1]) for word in words if word[:1] == ["oom_kill"]), None)
    except (OSError, ValueError, IndexError):
        return None
