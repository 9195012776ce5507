"""A finished HTTP request as the protocol-neutral summary that the request log and the metrics take."""

from collections.abc import Callable

from verditer.rest.http.message import Response
from verditer.rest.pipeline import Observer
from verditer.rest.stages import IncomingRequest, Routed
from verditer.serving.request_summary import RequestSummary


def summarized(service: str, record: Callable[[RequestSummary], None]) -> Observer:
    """An observer of the pipeline that passes a summary of each request to `record`."""

    def observe(stage: IncomingRequest, response: Response, now: int, seconds: float) -> None:
        request, body = stage.request, response.body
        size_bytes = response.length if request.method != "HEAD" else 0
        if size_bytes is None:
            size_bytes = len(body) if isinstance(body, bytes) else 0
        record(
            RequestSummary(
                time=now,
                service=service,
                operation=stage.op.name if isinstance(stage, Routed) else None,
                method=request.method,
                path=request.target.partition("?")[0],
                status=response.status,
                error_code=response.error_code,
                bytes_in=request.body.length or 0,
                bytes_out=size_bytes,
                seconds=seconds,
                request_id=stage.request_id,
                client=request.peer,
            )
        )

    return observe
