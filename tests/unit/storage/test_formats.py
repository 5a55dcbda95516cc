"""Documents of other versions: older ones become new ones, newer ones are refused by name."""

from typing import Any

import pytest

from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.storage.formats import FORMATS, RUN, Format, content_of


def _second_from_first(content: dict[str, Any]) -> dict[str, Any]:
    renamed = dict(content)
    renamed["time_s"] = renamed.pop("time_ms") / 1000
    return renamed


def _third_from_second(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"unit": "s"}


THIRD = Format(
    name="run",
    content=Run,
    version=3,
    max_bytes=1000,
    expanded_levels=1,
    migrations={1: _second_from_first, 2: _third_from_second},
)


def test_content_of__migrates_step_by_step() -> None:
    newest = {"time_s": 0.005, "unit": "s"}
    assert content_of({"format": "perfgate.run/1", "time_ms": 5}, THIRD, "r") == newest
    assert content_of({"format": "perfgate.run/2", "time_s": 0.005}, THIRD, "r") == newest
    assert content_of({"format": "perfgate.run/3"} | newest, THIRD, "r") == newest


def test_content_of__does_not_change_what_it_is_given() -> None:
    document = {"format": "perfgate.run/1", "time_ms": 5}
    content_of(document, THIRD, "r")
    assert document == {"format": "perfgate.run/1", "time_ms": 5}


def test_content_of__refuses_a_newer_version_by_name_and_says_what_to_do() -> None:
    with pytest.raises(DocumentError, match=r"perfgate\.run/2; this perfgate reads run documents up to") as caught:
        content_of({"format": "perfgate.run/2"}, RUN, "run.json")
    assert "upgrade perfgate" in caught.value.hint
    assert caught.value.pointer == "/format"


def test_content_of__refuses_an_old_version_without_a_way_up() -> None:
    gap = Format(name="run", content=Run, version=3, max_bytes=1, expanded_levels=1, migrations={2: dict})
    with pytest.raises(DocumentError, match="no longer reads"):
        content_of({"format": "perfgate.run/1"}, gap, "run.json")


@pytest.mark.parametrize("tag", ["perfgate.run", "perfgate.run/01", "perfgate.run/1 ", "perfgate.run/1\n", "run/1"])
def test_content_of__takes_no_tag_that_is_only_similar(tag: str) -> None:
    with pytest.raises(DocumentError, match="none of perfgate's"):
        content_of({"format": tag}, RUN, "run.json")


def test_formats__name_themselves() -> None:
    kinds = ("run", "baseline", "report", "fleet")
    assert [one.tag for one in FORMATS.values()] == [f"perfgate.{kind}/1" for kind in kinds]
