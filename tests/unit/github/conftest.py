"""A GitHub for each test that asks for one; any request or answer that GitHub's description forbids fails it."""

from collections.abc import Callable, Iterator

import pytest

from perfgate.github.api import Api
from tests.fake_github import REPOSITORY, TOKEN, FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()
    fake.add_pull()
    try:
        yield fake
    finally:
        fake.close()
    assert fake.violations == []


@pytest.fixture
def waits() -> list[float]:
    """What the API waited for, in order [s]."""
    return []


@pytest.fixture
def open_api(waits: list[float]) -> Callable[[FakeGitHub], Api]:
    def opened(fake: FakeGitHub, token: str = TOKEN) -> Api:
        return Api(
            repository=REPOSITORY,
            token=token,
            url=fake.url,
            graphql_url=fake.graphql_url,
            sleep=waits.append,
            now=lambda: 1_000_000.0,
        )

    return opened
