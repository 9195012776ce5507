"""The debug log of HTTP requests: request and response heads, without bodies. Only `--debug` wraps handlers with it, so it costs
nothing otherwise. Secrets are removed by `serving/logs.py`."""

import itertools
import logging
from collections.abc import Iterable

from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import Handler

logger = logging.getLogger("verditer")


def with_debug_log(service: str, handler: Handler) -> Handler:
    numbers = itertools.count(1)

    async def logged(request: Request) -> Response:
        number = f"{service} request {next(numbers)}"
        scheme = "https" if request.secure else "http"
        logger.debug(
            "%s from %s over %s: %s %s%s",
            number,
            request.peer,
            scheme,
            request.method,
            request.target,
            _lines(request.raw_headers),
        )
        try:
            response = await handler(request)
        except BaseException:
            logger.debug("%s ended without a response", number, exc_info=True)
            raise
        logger.debug("%s: response %d%s", number, response.status, _lines(response.headers))
        return response

    return logged


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"\n    {name}: {value}" for name, value in headers)
