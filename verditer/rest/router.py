"""Request → row. A row is found by method, depth of the path, `restype` and `comp`; headers decide between rows alike."""

from collections.abc import Mapping, Sequence

from verditer.core.errors import Code, StorageError, invalid_header, invalid_query, missing_header
from verditer.rest.address import Address
from verditer.rest.message import Request
from verditer.rest.operation import Level, Op

Shape = tuple[Level, str, str]


class Router:
    def __init__(self, operations: Sequence[Op]) -> None:
        self._rows: dict[tuple[str, Shape], tuple[Op, ...]] = {}
        for op in operations:
            for method in op.route.methods:
                key = (method, (op.route.level, op.route.restype, op.route.comp))
                self._rows[key] = (*self._rows.get(key, ()), op)
        self._shapes = {shape for _, shape in self._rows}

    def find(self, request: Request, address: Address, level: Level) -> Op:
        query = address.query
        shape = (level, query.get("restype", "").lower(), query.get("comp", "").lower())
        for op in self._rows.get((request.method, shape), ()):
            if not op.route.when or all(_holds(request, address, name, value) for name, value in op.route.when):
                return op
        raise self._refusal(request, shape, query)

    def _refusal(self, request: Request, shape: Shape, query: Mapping[str, str]) -> StorageError:
        """Say what is wrong: a header that decides, the verb, or the query."""
        rows = self._rows.get((request.method, shape))
        if rows is not None:
            name = rows[-1].route.when[0][0]
            sent = request.headers.get(name)
            return missing_header(name) if sent is None else invalid_header(name, sent)
        if shape in self._shapes:
            return StorageError(Code.UnsupportedHttpVerb)
        for name in ("comp", "restype"):
            if name in query:
                return invalid_query(name, query[name])
        return StorageError(Code.UnsupportedHttpVerb)


def _holds(request: Request, address: Address, name: str, wanted: str | None) -> bool:
    sent = request.headers.get(name, address.query.get(name))
    return sent is not None and (wanted is None or sent.lower() == wanted.lower())
