"""Requests to GitHub's REST API: one host, one token that never leaves it, patience with limits and outages.

Waiting is bounded, by request and in total: a report that cannot be delivered is worth minutes, not
an hour of a GPU runner.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from perfgate import __version__
from perfgate.errors import ConfigurationError, PublishError

if TYPE_CHECKING:
    import requests

API_VERSION = "2022-11-28"
# Seconds until a connection stands, and between two bytes of an answer.
TIMEOUT_S = (10.0, 30.0)
MAX_TRIES = 5
# Waiting of all requests together.
MAX_WAIT_S = 300.0
# GitHub asks for a minute where it names no time (its best practices for the REST API).
_SECONDARY_WAIT_S = 60.0
_MAX_PAGES = 100
_MAX_REDIRECTS = 3
_SHOWN_CHARACTERS = 300


class ForbiddenError(PublishError):
    """The token may not do this: a missing permission, a fork's read-only token, an expired token."""


class MissingError(PublishError):
    """There is no such thing, or the token may not see it."""


class RejectedError(PublishError):
    """GitHub found the content of a request wrong (422), such as too long a text."""


class UnreachableError(PublishError):
    """No answer: outage, timeout, connection, or a limit that lasts too long."""


class UncertainError(UnreachableError):
    """A request that is not repeatable may have been carried out although no answer came."""


class Api:
    """GitHub's API for one repository.

    Args:
        repository: "owner/name".
        token: sent to the host of ``url`` in a header, nowhere else and never shown.
        url: as GITHUB_API_URL: ``https://api.github.com``, ``https://HOST/api/v3``.
        graphql_url: as GITHUB_GRAPHQL_URL.
        sleep, now: the clock that waits are taken from; ``now`` in seconds since 1970.

    Proxies and a custom certificate authority come from the environment (HTTPS_PROXY, NO_PROXY,
    REQUESTS_CA_BUNDLE).

    Raises:
        ConfigurationError: the token cannot be sent in a header, or an address is none.
    """

    def __init__(
        self,
        *,
        repository: str,
        token: str,
        url: str = "https://api.github.com",
        graphql_url: str = "https://api.github.com/graphql",
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        import requests

        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError("the GitHub token holds characters that no token has", hint="check the secret")
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ConfigurationError(f"GITHUB_API_URL {url!r} is no address")
        self.repository = repository
        self._url = url.rstrip("/")
        self._graphql_url = graphql_url
        self._sleep, self._now = sleep, now
        self._waited_s = 0.0
        self._session = requests.Session()
        self._session.auth = _Token(token)
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": API_VERSION,
                "User-Agent": f"perfgate/{__version__}",
            }
        )
        self.is_installation = token.startswith("ghs_")

    def __repr__(self) -> str:
        return f"Api({self._url}, {self.repository})"

    def fetch(self, path: str, **query: str) -> Any:
        """Fetch one thing below ``/repos/OWNER/NAME``; raises like ``send``."""
        return self.send("GET", path, query=query).json()

    def fetch_pages(self, path: str, *, key: str | None = None, **query: str) -> Iterator[Any]:
        """Yield the items of all pages of a list (of the list ``key`` within each page); raises like ``send``."""
        for page in range(1, _MAX_PAGES + 1):
            answer = self.send("GET", path, query={**query, "per_page": "100", "page": str(page)})
            content = answer.json()
            yield from content if key is None else content[key]
            if "next" not in answer.links:
                return

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create something. Not repeated when it may have been done: UncertainError; else raises like ``send``."""
        return self.send("POST", path, body=body).json()

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change something; raises like ``send``."""
        return self.send("PATCH", path, body=body).json()

    def delete(self, path: str) -> None:
        """Remove something; raises like ``send``."""
        self.send("DELETE", path)

    def fetch_login(self) -> str | None:
        """Return the login that this token acts as; None where GitHub does not say."""
        body = {"query": "query { viewer { login } }"}
        try:
            answer = self._sent("POST", self._graphql_url, body=body, is_repeatable=True).json()
            return str(answer["data"]["viewer"]["login"])
        except (PublishError, KeyError, TypeError):
            return None

    def send(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> "requests.Response":
        """Send a request below ``/repos/OWNER/NAME`` and return its answer, a success.

        Raises:
            ForbiddenError: 401 or 403 but for a rate limit.
            MissingError: 404 or 410.
            RejectedError: 422.
            UnreachableError: no answer, a server error or a rate limit, in spite of repeating.
            UncertainError: so, and it may have been carried out.
            PublishError: any other refusal.
        """
        owner, _, name = self.repository.partition("/")
        url = f"{self._url}/repos/{quote(owner, safe='')}/{quote(name, safe='')}{path}"
        return self._sent(method, url, query=query, body=body, is_repeatable=method != "POST")

    def _sent(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        is_repeatable: bool,
    ) -> "requests.Response":
        import requests

        what = f"{method} {urlsplit(url).path}"
        trouble = ""
        for attempt in range(MAX_TRIES):
            try:
                answer = self._followed(method, url, query, body)
            except requests.exceptions.SSLError:
                raise UnreachableError(
                    f"{what}: the server's certificate is not trusted",
                    hint="name the authority's certificate in REQUESTS_CA_BUNDLE",
                ) from None
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
                trouble, wait_s = f"no answer ({type(error).__name__})", 2.0**attempt
                if not is_repeatable and not isinstance(error, requests.ConnectTimeout):
                    raise UncertainError(f"{what}: {trouble}") from None
            except OSError as error:  # of requests, or of a file that its environment names
                raise UnreachableError(f"{what}: {error}", hint="check proxy and certificate settings") from None
            else:
                if answer.ok:
                    return answer
                limit_s = _limit_wait_s(answer, attempt, self._now())
                if limit_s is None and answer.status_code < 500:
                    raise _refusal(what, answer)
                trouble = f"answered {answer.status_code}{': ' + _told(answer) if limit_s is not None else ''}"
                if limit_s is None and not is_repeatable:
                    raise UncertainError(f"{what}: {trouble}")
                wait_s = 2.0**attempt if limit_s is None else limit_s
            if attempt == MAX_TRIES - 1 or not self._waits(wait_s):
                break
        raise UnreachableError(f"{what}: {trouble}", hint="the report is in the job summary; run the job again later")

    def _waits(self, wait_s: float) -> bool:
        """Wait, unless that were more than all requests together may wait."""
        if self._waited_s + wait_s > MAX_WAIT_S:
            return False
        self._waited_s += wait_s
        self._sleep(wait_s)
        return True

    def _followed(
        self, method: str, url: str, query: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> "requests.Response":
        """Send and follow redirects (renamed repositories), with the same method and to the same host only."""
        for _ in range(_MAX_REDIRECTS):
            answer = self._session.request(
                method, url, params=query, json=body, timeout=TIMEOUT_S, allow_redirects=False
            )
            if not answer.is_redirect:
                return answer
            target = urljoin(url, answer.headers["Location"])
            if urlsplit(target)[:2] != urlsplit(url)[:2]:
                raise PublishError(f"{method} {urlsplit(url).path}: redirected to another host: not followed")
            url, query = target, None
        raise PublishError(f"{method} {urlsplit(url).path}: redirected in circles")


class _Token:
    """Puts the token into the header; its repr does not show it. Being an auth, it also outranks a .netrc."""

    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def __call__(self, request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        request.headers["Authorization"] = self._header
        return request


def _limit_wait_s(answer: "requests.Response", attempt: int, now_s: float) -> float | None:
    """Return how long a rate limit asks to wait; None where the answer is no rate limit."""
    if answer.status_code not in (403, 429):
        return None
    headers = answer.headers
    if (told := _number(headers.get("Retry-After"))) is not None:
        return told
    if headers.get("X-RateLimit-Remaining") == "0" and (reset_s := _number(headers.get("X-RateLimit-Reset"))):
        return max(reset_s - now_s, 0.0) + 1.0
    if answer.status_code == 429 or "rate limit" in _told(answer).lower():
        return _SECONDARY_WAIT_S * 2.0**attempt
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _refusal(what: str, answer: "requests.Response") -> PublishError:
    message = f"{what}: answered {answer.status_code}: {_told(answer)}"
    match answer.status_code:
        case 401:
            return ForbiddenError(message, hint="the token is wrong or has expired")
        case 403:
            return ForbiddenError(
                message,
                hint="give the job the permission (pull-requests: write, checks: write); a fork's token is read-only",
            )
        case 404 | 410:
            return MissingError(message, hint="it does not exist, or the token may not see it")
        case 422:
            return RejectedError(message)
        case _:
            return PublishError(message)


def _told(answer: "requests.Response") -> str:
    """What GitHub says, in a line of bounded length."""
    try:
        content = answer.json()
        told = str(content["message"])
        told += "".join(f"; {error.get('message') or error.get('code')}" for error in content.get("errors", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        told = answer.reason or ""
    return " ".join(told.split())[:_SHOWN_CHARACTERS]
