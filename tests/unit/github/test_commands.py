from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from perfgate.github.commands import (
    MAX_SUMMARY_BYTES,
    Annotation,
    Silence,
    append_outputs,
    append_summary,
    render_annotation,
)


def runner_outputs(text: str) -> dict[str, str]:
    """Read an output file as the runner does."""
    found, lines = {}, text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        name, _, delimiter = line.partition("<<")
        value = []
        while lines[0] != delimiter:
            value.append(lines.pop(0))
        lines.pop(0)
        found[name] = "\n".join(value)
    return found


@given(title=st.text(), message=st.text(), file=st.none() | st.text(min_size=1))
def test_render_annotation__is_one_command_whatever_the_texts_hold(title: str, message: str, file: str | None) -> None:
    text = render_annotation(Annotation(level="error", title=title, message=message, file=file))
    assert text.startswith("::error title=")
    assert "\n" not in text
    assert "\r" not in text
    # Of the properties only our own separators are left: the title cannot set a file, nor end the command.
    properties = text.removeprefix("::error ").partition("::")[0]
    assert properties.count(",") == (2 if file is not None else 0)


@given(st.dictionaries(st.from_regex(r"[a-z-]{1,10}", fullmatch=True), st.text(alphabet="ab<\n_perfgate="), max_size=4))
def test_append_outputs__come_back_as_the_runner_reads_them(tmp_path_factory: object, outputs: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("out") / "outputs"  # type: ignore[attr-defined]
    append_outputs(path, outputs)
    assert runner_outputs(path.read_text() if path.exists() else "") == outputs


def test_append_outputs__later_values_win(tmp_path: Path) -> None:
    append_outputs(tmp_path / "o", {"verdict": "error"})
    append_outputs(tmp_path / "o", {"verdict": "passed"})
    assert runner_outputs((tmp_path / "o").read_text())["verdict"] == "passed"


def test_append_summary__stays_below_the_limit_and_whole_in_utf8(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("of an earlier tool\n", encoding="utf-8")
    append_summary(path, "🚀" * 262_145)  # 1,048,580 bytes
    data = path.read_bytes()
    assert MAX_SUMMARY_BYTES - 4 < len(data) <= MAX_SUMMARY_BYTES
    assert data.decode("utf-8").startswith("of an earlier tool\n🚀")


def test_append__without_a_file_does_nothing() -> None:
    append_summary(None, "x")
    append_outputs(None, {"x": "y"})


def test_silence__tokens_differ() -> None:
    one, other = Silence(), Silence()
    assert one.begin != other.begin
    assert one.begin == f"::stop-commands::{one.end.strip(':')}"
