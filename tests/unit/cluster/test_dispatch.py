"""Joining a cluster: what is said where there is none. The rest is tested on a cluster, in tests/faults."""

import socket

import pytest

from perfgate.cluster.dispatch import joined
from perfgate.errors import ConfigurationError

ray = pytest.importorskip("ray")


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_joined__where_nobody_listens_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port
        address = f"{prefix}127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match="no Ray cluster at") as caught, joined(address):
            pass
    assert address in caught.value.message
