from pathlib import Path

import pytest

from perfgate.measure.memory_kills import memory_kill_count


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "count"),
    [
        (
            {
                "proc/self/cgroup": "0::/job\n",
                "sys/fs/cgroup/job/memory.events": "low 0\noom 9\noom_kill 3\n",
                "sys/fs/cgroup/memory.events": "oom_kill 8\n",
                "proc/vmstat": "oom_kill 5\n",
            },
            3,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.events": "oom_kill 2\n"}, 2),
        ({"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/memory.events": "oom_kill 2\n"}, 2),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n",
                "sys/fs/cgroup/memory/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            },
            1,
        ),
        ({"proc/self/cgroup": "0::/\n", "proc/vmstat": "pgfault 1\noom_kill 5\n"}, 5),
        ({"proc/vmstat": "oom_kill 5\n"}, 5),
        ({"proc/self/cgroup": "nonsense\n", "proc/vmstat": "oom_kill\n"}, None),
        ({"proc/vmstat": "oom_kill many\n"}, None),
        ({}, None),
    ],
)
def test_memory_kill_count__reads_the_nearest_counter(tmp_path: Path, files: dict[str, str], count: int | None) -> None:
    assert memory_kill_count(write(tmp_path, files)) == count


def test_memory_kill_count__works_on_this_machine() -> None:
    assert memory_kill_count() is None or memory_kill_count() >= 0  # type: ignore[operator]
