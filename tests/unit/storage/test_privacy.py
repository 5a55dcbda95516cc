"""What texts from elsewhere lose before they are written, and what they keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.storage.privacy import withheld


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/srv/builds/secret/kernels/own.cu(3): error: x", ".../own.cu(3): error: x"),
        ("'/actions-runner/_work/secret/k.cu' failed", "'.../k.cu' failed"),
        ("no file /tmp/x then a/b", "no file .../x then a/b"),
        ("/home/alice/x/y.cu and /root/z", "~/x/y.cu and ~/z"),
        ("GPU-5a1b2c3d-0123-4567-89ab-0123456789ab is lost", "GPU-withheld is lost"),
        ("4.3 TB/s of 1/2, 3/4", None),
        ("/usr/local/cuda/bin/nvcc and /dev/nvidia0", None),
        ("https://example.org/a/b, run.json#/launches/2/cases, docs/a/b.md, ~/x/y", None),
    ],
)
def test_withheld__takes_folders_and_leaves_names_units_and_addresses(text: str, kept: str | None) -> None:
    assert withheld(text) == (text if kept is None else kept)


@given(st.text(st.sampled_from("ab/.~ :#-0") | st.characters(), max_size=60))
def test_withheld__twice_is_as_once(text: str) -> None:
    assert withheld(withheld(text)) == withheld(text)
