import pytest

from perfgate.core.selection import is_match, matching, near_names

IDS = ("bandwidth.copy[bytes=4GiB]", "bandwidth.copy[bytes=64MiB]", "bandwidth.read[bytes=4GiB]", "launch.gap")


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("*", 4),
        ("bandwidth.*", 3),
        ("bandwidth.copy*", 2),
        ("bandwidth.copy", 2),
        ("bandwidth.copy[bytes=4GiB]", 1),
        ("*[bytes=4GiB]", 2),
        ("bandwidth.copy[bytes=?GiB]", 1),
        ("bandwidth.????", 3),
        ("launch.gap", 1),
        ("bandwidth", 0),
        ("bandwidth.cop", 0),
        ("bandwidth.copy[ab]", 0),
        ("BANDWIDTH.copy", 0),
        ("", 0),
        (".*", 0),
    ],
)
def test_matching__only_star_and_question_mark_are_special(pattern: str, count: int) -> None:
    assert len(matching(IDS, pattern)) == count


def test_is_match__every_id_means_itself_alone() -> None:
    assert all(matching(IDS, one) == (one,) for one in IDS)
    assert not is_match("a.b[n=4]", "a.b[n=4")


def test_near_names__finds_a_mistyped_case() -> None:
    assert near_names("bandwidth.copies", IDS)[0] == "bandwidth.copy[bytes=4GiB]"
    assert near_names("lunch.gap*", IDS) == ("launch.gap",)
    assert near_names("zzzzzzzz", IDS) == ()
