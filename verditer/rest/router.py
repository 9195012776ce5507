"""Request → row. A row is found by method, depth of the path, `restype` and `comp`; headers decide between rows alike."""

from collections.abc import Mapping, Sequence

from verditer.core.errors import Code, StorageError, invalid_header, invalid_query, missing_header
from verditer.rest.address import Address
from verditer.rest.message import Request
from verditer.rest.operation import Level, Op

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
        self._alone = {rows[0].name for rows in self._rows.values() if len(rows) == 1 and not rows[0].route.when}

    def find(self, request: Request, address: Address, level: Level, verb: str = "") -> Op:
        """`verb` is what the request means where that is not the verb it was sent with."""
        query = address.query
        verb = verb or request.method
        shape = (level, query.get("restype", "").lower(), query.get("comp", "").lower())
        for op in self._rows.get((verb, shape), ()):
            for name, wanted in op.route.when:
                sent = query.get(name) if "-" not in name else request.headers.get(name) or None
                if sent is None or (wanted is not None and sent.lower() != wanted.lower()):
                    break
            else:
                return op
        raise self._refusal(request, verb, shape, query)

    def is_alone(self, op: Op) -> bool:
        """No header decides about it: verb and target say that it is this row."""
        return op.name in self._alone

    def _refusal(self, request: Request, verb: str, shape: Shape, query: Mapping[str, str]) -> StorageError:
        """Say what is wrong: a header that decides, the verb, or the query."""
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
