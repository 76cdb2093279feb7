"""What our applications share: routes of pages, refusals, and the headers that keep a page to itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from eventlog.web import is_loopback

FIELDS = 50  # of a query
BODIES = 4  # of the largest size, at a time
LARGEST = 1 << 20  # bytes of a body
_COLOURS = {  # of icons
    "error": "#b3261e",
    "warning": "#c77700",
    "retry": "#c77700",
    "success": "#17683a",
    "quiet": "#5b6472",
}
SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without one, browsers withhold the Origin of our own forms too
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[Request], Response]
Runner = Callable[[Handler, Request], Awaitable[Response]]  # of an answer in a thread


class BadFields(HTTPException):
    """An error in the fields of a query or a form; its text is the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(HTTPStatus.BAD_REQUEST, reason)


def read_fields(text: str, max_fields: int = FIELDS) -> dict[str, str]:
    """Return the last value of each field of a query or a form. Raise BadFields for too many, and for NUL."""
    try:
        fields = parse_qs(text, max_num_fields=max_fields)
    except ValueError:
        raise BadFields(f"at most {max_fields} fields are taken") from None
    if any("\0" in value for values in fields.values() for value in values):
        raise BadFields("a field holds no character U+0000")
    return {name: values[-1] for name, values in fields.items()}


def page(path: str, answer: Handler, *, post: bool = False, run: Runner = run_in_threadpool) -> Route:
    """Return the route of what a thread answers; `request.state` has the query's fields, and the body."""

    async def endpoint(request: Request) -> Response:
        request.state.query = read_fields(request.url.query)
        request.state.body = await request.body()
        return await run(answer, request)

    return Route(path, endpoint, methods=["GET", "POST"] if post else ["GET"])


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal, in plain text."""
    return PlainTextResponse(f"{sentence}\n", status, headers)


def make_app(
    routes: Sequence[Route],
    host: str,
    largest: int = LARGEST,
    faults: Mapping[type[Exception], ExceptionHandler] | None = None,
    missing: str = "there is nothing here",
    show_missing: Callable[[str], Response] | None = None,
) -> ASGIApp:
    """Return an application that listens at a host, with the style and the script of our pages."""

    async def refuse(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, HTTPException)
        if fault.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            is_plain = fault.detail in ("Not Found", "Method Not Allowed")
            show = show_missing or partial(refusal, HTTPStatus.NOT_FOUND)
            return await run_in_threadpool(show, missing if is_plain else fault.detail)
        return refusal(fault.status_code, fault.detail, fault.headers)

    async def fail(request: Request, fault: Exception) -> Response:
        return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; standard error has the reason")

    async def part_from(request: Request, fault: Exception) -> Response:
        return Response()  # to a visitor that went away

    app = Starlette(
        routes=[_asset("page.css", "text/css"), _asset("page.js", "text/javascript"), _ICON, *routes],
        exception_handlers={
            HTTPException: refuse,
            ClientDisconnect: part_from,
            Exception: fail,
            **(faults or {}),
        },
    )
    app.router.redirect_slashes = False
    return Guard(app, is_loopback(host), largest)


async def _icon(request: Request) -> Response:
    """Return a disc in the colour of a state."""
    if (colour := _COLOURS.get(request.path_params["kind"])) is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    disc = f'<circle cx="8" cy="8" r="7" fill="{colour}"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{disc}</svg>'
    return Response(svg, media_type="image/svg+xml")


_ICON = Route("/icon/{kind}.svg", _icon)


def _asset(name: str, media_type: str) -> Route:
    async def endpoint(request: Request) -> Response:
        return Response(packaged(name), media_type=media_type)

    return Route(f"/{name}", endpoint)


@cache
def packaged(name: str) -> str:
    """Return the text of a file next to this one."""
    return files("eventlog.web").joinpath(name).read_text("utf-8")


class Guard:
    """A refusal of what is too large or not for us, before it is read; and headers for what is answered."""

    def __init__(self, app: ASGIApp, loopback: bool, largest: int) -> None:
        self._app = app
        self._loopback = loopback
        self._largest = largest
        self._room = BODIES * largest  # bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refusal(scope["method"], headers)
        if refused is not None:
            refused.headers["Connection"] = "close"  # its body is not read
            await refused(scope, receive, send_safely)
            return
        size = _length(headers)
        self._room -= size
        try:
            await self._app(scope, receive, send_safely)
        finally:
            self._room += size

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        if "Transfer-Encoding" in headers:
            return refusal(HTTPStatus.LENGTH_REQUIRED, "say the Content-Length")
        if _length(headers) > self._largest:
            return refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {self._largest} bytes are not taken"
            )
        if self._loopback and not _names_loopback(headers.get("Host", "localhost")):
            return refusal(HTTPStatus.MISDIRECTED_REQUEST, "ask for localhost")
        if method == "POST" and _is_of_another_site(headers):
            return refusal(HTTPStatus.FORBIDDEN, "another site's page may not send this")
        return busy() if _length(headers) > self._room else None


def busy() -> Response:
    """Return the refusal of a request for which there is no room now."""
    return refusal(
        HTTPStatus.SERVICE_UNAVAILABLE, "too much is on its way here; come again", {"Retry-After": "1"}
    )


def _length(headers: Headers) -> int:
    return int(headers.get("Content-Length", "0"))  # h11 takes one number of at most 20 digits


def _names_loopback(host: str) -> bool:
    """Return whether the request names this machine, against DNS rebinding by pages of other sites."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def _is_of_another_site(headers: Headers) -> bool:
    """Return whether another site's page sends this.

    Browsers report it. Old ones, and those without encryption to another machine, only report the page's
    site.
    """
    site, origin = headers.get("Sec-Fetch-Site"), headers.get("Origin")
    if site is not None:
        return site not in ("none", "same-origin")
    return origin is not None and origin.partition("://")[2] != headers.get("Host")
