import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.measure.journal import (
    CaseFailed,
    CaseMeasured,
    FailureKind,
    JournalReader,
    LaunchFailed,
    LaunchFinished,
    Message,
    Phase,
    PhaseEntered,
    Started,
    open_journal,
)
from tests.factories import PLAN, make_case_launch

MESSAGES: tuple[Message, ...] = (
    Started(pid=7),
    PhaseEntered(case_id="a.b[n=1]", phase=Phase.WARM_UP),
    CaseMeasured(case_id="a.b[n=1]", result=make_case_launch(1e-3), plan=PLAN, code_sha256="c0de"),
    CaseFailed(case_id="a.c", kind=FailureKind.WRONG_OUTPUT, message="µ: NaN\nat (0, 0)"),
    LaunchFailed(kind=FailureKind.DEVICE, message="gone"),
    LaunchFinished(event_floor_s=2e-6),
    LaunchFinished(),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_journal__every_message_comes_back(path: Path) -> None:
    with open_journal(path) as journal:
        for message in MESSAGES:
            journal.write(message)
    reader = JournalReader(path)
    assert reader.last_messages() == MESSAGES
    assert reader.damages == ()


def test_journal__each_message_is_readable_at_once_and_read_once(path: Path) -> None:
    reader = JournalReader(path)
    assert reader.messages() == ()
    with open_journal(path) as journal:
        for message in MESSAGES:
            journal.write(message)
            assert reader.messages() == (message,)
    assert reader.messages() == ()


def test_journal__a_number_that_is_not_finite_is_refused_and_writes_nothing(path: Path) -> None:
    with open_journal(path) as journal, pytest.raises(ValueError, match="JSON compliant"):
        journal.write(LaunchFinished(event_floor_s=math.nan))
    assert path.read_bytes() == b""


def test_journal_reader__a_line_counts_only_when_it_is_complete(path: Path) -> None:
    with open_journal(path) as journal:
        journal.write(MESSAGES[2])
    whole = path.read_bytes()
    reader = JournalReader(path)
    path.write_bytes(whole[:40])
    assert reader.messages() == ()
    path.write_bytes(whole)
    assert reader.last_messages() == (MESSAGES[2],)
    assert reader.damages == ()


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"hello\n", "not JSON: 'hello'"),
        (b"\n", "not JSON: ''"),
        (b"\xff\xfe\n", r"not JSON: '\\xff\\xfe'"),
        (b"[1]\n", "not a message of a launch: '[1]'"),
        (b'{"says":"hello"}\n', "not a message of a launch"),
        (b'{"says":["started"]}\n', "not a message of a launch"),
        (b'{"says":"started"}\n', "started: /: 'pid' is missing"),
        (b'{"says":"started","pid":"x"}\n', "started: /pid: expected int, found text"),
        (b'{"says":"started","pid":1,"more":2}\n', "started: /more: unknown field"),
        (b'{"says":"finished","event_floor_s":NaN}\n', "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON: '[[["),
        (b'{"says":"started"', "cut off after 17 bytes"),
    ],
)
def test_journal_reader__damaged_lines_are_named_and_skipped(path: Path, line: bytes, named: str) -> None:
    with open_journal(path) as journal:
        journal.write(MESSAGES[0])
    with path.open("ab") as file:
        file.write(line)
    reader = JournalReader(path)
    assert reader.last_messages() == MESSAGES[:1]
    (damage,) = reader.damages
    assert damage.startswith("journal line 2: ")
    assert named in damage
    assert len(damage) < 200


def test_journal_reader__a_block_that_makes_no_sense_is_damage(path: Path) -> None:
    with open_journal(path) as journal:
        journal.write(MESSAGES[2])
    value = json.loads(path.read_text())
    value["result"]["blocks"][0]["times_s"][0] = -1.0
    path.write_text(json.dumps(value) + "\n")
    reader = JournalReader(path)
    assert reader.messages() == ()
    assert "/result/blocks/0: a block's times must be finite and positive" in reader.damages[0]


def test_journal_reader__a_flood_of_damage_is_counted_not_kept(path: Path) -> None:
    path.write_bytes(b"x\n" * 1000)
    reader = JournalReader(path)
    assert reader.messages() == ()
    assert len(reader.damages) == 21
    assert reader.damages[-1] == "and 980 more lines"


def test_journal_reader__a_line_without_end_is_not_held_in_memory(path: Path) -> None:
    path.write_bytes(b"x" * (40 * 2**20))
    reader = JournalReader(path)
    assert reader.messages() == ()
    with path.open("ab") as file:
        file.write(b'\n{"says":"started","pid":7}\n')
    assert reader.messages() == (Started(pid=7),)
    assert reader.damages == ("journal line 1: too long",)


@given(st.binary(max_size=300))
def test_journal_reader__never_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    path.write_bytes(content + b'\n{"says":"started","pid":7}\n')
    assert Started(pid=7) in JournalReader(path).last_messages()
