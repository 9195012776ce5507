"""Operations that have a row and no implementation answer 501 with their name. The test cases are the rows themselves."""

import pytest

from tests.rest.client import Box
from verditer.rest.operation import Level, Op
from verditer.rest.operations.blob import OPERATIONS

NOT_YET = [op for op in OPERATIONS if not op.is_built]


@pytest.mark.parametrize("op", NOT_YET, ids=lambda op: op.name)
def test_an_operation_that_is_not_built_answers_501_with_its_name(box: Box, op: Op) -> None:
    path = {Level.SERVICE: "", Level.CONTAINER: box.path, Level.BLOB: f"{box.path}/blob"}[op.route.level]
    query = {name: value for name, value in (("restype", op.route.restype), ("comp", op.route.comp)) if value}
    headers = {}
    for name, value in op.route.when:
        if name.startswith("x-ms-"):
            headers[name] = value or "1"
        else:
            query[name] = value or "1"
    box.put()
    for body in (None, b"a body"):
        reply = box.client.send(op.route.methods[0], path, query, headers, body)
        assert reply.answer == (501, "NotImplemented")
        assert f"{op.name} is not implemented by this server yet." in (reply.detail("Message") or "")


def test_a_row_that_is_built_is_not_in_the_list() -> None:
    assert {"GetBlob", "PutBlob", "LeaseBlob"}.isdisjoint(op.name for op in NOT_YET)
