"""Built-in cases are frozen: what a version of a case runs never changes."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.case import Case, Work
from perfgate.errors import ConfigurationError
from perfgate.suite import built_in_suite
from perfgate.suite.sources import source_files, source_sha256, suite_sha256
from tests.factories import H200
from tests.unit.suite.declarations import CHECKING
from tests.unit.suite.fake_toolbox import FakeToolbox

PAIR = replace(H200, peer_link="nvlink-18x26.6")
TABLE = Path(__file__).parent / "frozen_sources.json"
ADVICE = """{name} version {version}: {what} differs from the one that was frozen.
Stored baselines of this version would compare different code. Either undo the change, or raise the case's version
and run this test with --update-golden, which adds the new version to {table}. (A version that was
never released may change: delete its entry first.)"""


def own_case(*sources: Path) -> Case:
    return Case(id="own.case", version=1, work=Work(), prepare=lambda toolbox: None, sources=tuple(map(str, sources)))


def launches_sha256(case: Case) -> str:
    """Hash of how a case launches on an H200 with a peer: functions, knobs, grids, scalars; not the checks."""
    toolbox = FakeToolbox(gpu=PAIR, emulate=False)
    case.prepare(toolbox)
    launches = [
        [
            bind.source,
            bind.function,
            sorted(bind.defines.items()),
            bind.grid,
            bind.block,
            bind.shared_bytes,
            [str(one.item()) if isinstance(one, np.generic) else one.size_bytes for one in bind.args],
        ]
        for bind in toolbox.binds
        if bind.source not in CHECKING
    ]
    return hashlib.sha256(json.dumps(launches).encode()).hexdigest()


def test_built_in_cases__are_as_frozen(update_golden: bool) -> None:
    frozen = json.loads(TABLE.read_text(encoding="utf-8"))
    current = {
        f"{case.id} version {case.version}": {
            "source_sha256": source_sha256(case),
            "launches_sha256": launches_sha256(case),
        }
        for case in built_in_suite("full", PAIR).cases
    }
    if update_golden:
        frozen = current | frozen
        TABLE.write_text(json.dumps(dict(sorted(frozen.items())), indent=2) + "\n", encoding="utf-8")
    for key, hashes in current.items():
        name, _, version = key.partition(" version ")
        for what, value in hashes.items():
            assert frozen.get(key, {}).get(what) == value, ADVICE.format(
                name=name, version=version, what=what, table=TABLE.name
            )


def test_source_sha256__follows_headers_and_ignores_line_endings(tmp_path: Path) -> None:
    source, header, inner = tmp_path / "own.cu", tmp_path / "own.cuh", tmp_path / "inner.cuh"
    source.write_bytes(b'#include "own.cuh"\nint a;\n')
    header.write_bytes(b'  # include "inner.cuh"\n#include "own.cuh"\n')
    inner.write_bytes(b"int b;\n")
    case = own_case(source)
    assert [path.name for path in source_files(case)] == ["own.cu", "own.cuh", "inner.cuh"]
    first = source_sha256(case)
    source.write_bytes(b'#include "own.cuh"\r\nint a;\r\n')
    assert source_sha256(case) == first
    inner.write_bytes(b"int c;\n")
    assert source_sha256(case) != first


def test_source_sha256__does_not_depend_on_the_folder(tmp_path: Path) -> None:
    hashes = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        source = tmp_path / folder / "own.cu"
        source.write_text("int a;\n", encoding="utf-8")
        hashes.add(source_sha256(own_case(source)))
    assert len(hashes) == 1


def test_source_sha256__is_none_without_sources() -> None:
    assert source_sha256(own_case()) is None


def test_source_files__names_a_missing_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"own.case: kernel source .*gone.cu does not exist"):
        source_files(own_case(tmp_path / "gone.cu"))


def test_suite_sha256__changes_with_a_version_and_not_with_the_order() -> None:
    suite = built_in_suite("default", H200)
    assert suite_sha256(replace(suite, cases=suite.cases[::-1])) == suite_sha256(suite)
    raised = replace(suite.cases[0], version=suite.cases[0].version + 1)
    assert suite_sha256(replace(suite, cases=(raised, *suite.cases[1:]))) != suite_sha256(suite)
