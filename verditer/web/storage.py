"""The storage services on the admin port: `/storage/<service>/<account>/…` is Azure's REST API, for callers with the admin token.

The requests run through the same pipeline as those of the storage ports, so every rule, condition and error is the same. What a
user has stored must not act as a page of the explorer, so every answer is a download that browsers neither interpret nor frame.
"""

from collections.abc import Callable
from urllib.parse import quote, unquote

import msgspec

from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import Handler
from verditer.web.answers import json_answer

PREFIX = "/storage/"
Handlers = Callable[[str, bool], Handler | None]
"""(service, read only) → what answers its requests; None for a service that does not exist."""

_GUARDS = [
    ("Content-Security-Policy", "sandbox; default-src 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
]
_METADATA = "x-ms-meta-"
_METADATA_NAMES = "X-Verditer-Metadata-Names"  # browsers give pages the names of headers in lower case
_DROPPED = {"content-disposition", "cache-control", "set-cookie", "refresh", "link"}


class Storage:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def handle(self, request: Request, *, read_only: bool) -> Response:
        service, _, target = request.target.removeprefix(PREFIX).partition("/")
        handler = self._handlers(service, read_only)
        if handler is None or request.method == "OPTIONS":
            return json_answer(404, {"error": "the services are blob, queue, table and file"})
        headers = {name: value for name, value in request.headers.items() if name not in ("authorization", "cookie", "origin")}
        response = await handler(msgspec.structs.replace(request, target=f"/{target}", headers=headers))
        return _guarded(request, response)


def _guarded(request: Request, response: Response) -> Response:
    kept = [(name, value) for name, value in response.headers if name.lower() not in _DROPPED or request.method == "HEAD"]
    extra = list(_GUARDS)
    if request.method != "HEAD":  # the answer to HEAD has the Cache-Control that is stored, which the page shows and edits
        extra.append(("Cache-Control", "no-store"))
    if names := [name[len(_METADATA) :] for name, _ in kept if name.lower().startswith(_METADATA)]:
        extra.append((_METADATA_NAMES, ",".join(names)))
    if request.method == "GET":
        name = unquote(request.target.partition("?")[0]).rstrip("/").rpartition("/")[2]
        extra.append(("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}"))
    return msgspec.structs.replace(response, headers=kept + extra)
