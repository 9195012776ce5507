"""Request → row: found by verb, depth of the path, `restype` and `comp`; where several fit, headers or parameters decide."""

from collections.abc import Mapping, Sequence

from verditer.core.errors import Code, StorageError
from verditer.rest.address import Address
from verditer.rest.http.message import Request
from verditer.rest.operation import Level, Op
from verditer.rest.wire_errors import invalid_header, invalid_query, missing_header

Shape = tuple[Level, str, str]


class Router:
    def __init__(self, operations: Sequence[Op], *, wrong_verb: Code = Code.UnsupportedHttpVerb) -> None:
        self._wrong_verb = wrong_verb
        self._rows: dict[tuple[str, Shape], tuple[Op, ...]] = {}
        for op in operations:
            for method in op.route.methods:
                key = (method, (op.route.level, op.route.restype, op.route.comp))
                self._rows[key] = (*self._rows.get(key, ()), op)
        self._shapes = {shape for _, shape in self._rows}
        self._conditional = {op.name for rows in self._rows.values() for op in rows if len(rows) > 1 or op.route.when}

    def find(self, request: Request, address: Address, level: Level, verb: str = "") -> Op:
        """`verb` is the verb that the request means, if it was sent with another one."""
        query = address.query
        verb = verb or request.method
        shape = (level, query.get("restype", "").lower(), query.get("comp", "").lower())
        for op in self._rows.get((verb, shape), ()):
            for name, value in op.route.when:
                sent = query.get(name) if "-" not in name else request.headers.get(name) or None
                if sent is None or (value is not None and sent.lower() != value.lower()):
                    break
            else:
                return op
        raise self._refusal(request, verb, shape, query)

    def is_decided_by_line(self, op: Op) -> bool:
        """Whether verb and target alone lead to this row, and no header does."""
        return op.name not in self._conditional

    def _refusal(self, request: Request, verb: str, shape: Shape, query: Mapping[str, str]) -> StorageError:
        """Name what is wrong: a header that decides between rows, the verb, or the query."""
        rows = self._rows.get((verb, shape))
        if rows is not None:
            name = rows[-1].route.when[0][0]
            sent = request.headers.get(name)
            return missing_header(name) if sent is None else invalid_header(name, sent)
        if shape in self._shapes:
            return StorageError(self._wrong_verb)
        for name in ("comp", "restype"):
            if name in query:
                return invalid_query(name, query[name])
        return StorageError(self._wrong_verb)
