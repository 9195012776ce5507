"""Chains of requests, credits, answers that come later, and CANCEL."""

import struct
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareClient

from tests.rest.running import Running
from tests.smb.raw import (
    ALL_ONES,
    CANCEL,
    CHANGE_NOTIFY,
    CLOSE,
    CREATE,
    ECHO,
    EMPTY,
    IS_ASYNC,
    IS_RELATED,
    IS_SIGNED,
    QUERY_INFO,
    READ,
    TREE_CONNECT,
    WRITE,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from verditer.smb.status import Status

RELATED = IS_RELATED | IS_SIGNED
NONE_64, NONE_32 = 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF


@pytest.fixture
def client(account: Running, sdk: ShareClient) -> Iterator[RawClient]:
    client = RawClient(account).mounted(sdk.share_name)
    yield client
    client.close()


def _query_body(file_id: bytes = ALL_ONES, room: int = 4096) -> bytes:
    return struct.pack("<HBBIHHIII16s", 41, 1, 18, room, 0, 0, 0, 0, 0, file_id) + b"\0"


def _read_body(file_id: bytes, length: int) -> bytes:
    return struct.pack("<HBBIQ16sIIIHH", 49, 0, 0, length, 0, file_id, 0, 0, 0, 0, 0) + b"\0"


def _write_body(file_id: bytes, data: bytes) -> bytes:
    return struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), 0, file_id, 0, 0, 0, 0, 0) + data


def _notify_body(file_id: bytes) -> bytes:
    return struct.pack("<HHI16sII", 32, 0, 4096, file_id, 3, 0)


def _related(client: RawClient, command: int, body: bytes) -> bytes:
    """A request that takes everything from the one before it."""
    return client.request(command, body, flags=RELATED, session_id=NONE_64, tree_id=NONE_32)


def test_related_requests_use_what_the_first_one_opened(client: RawClient) -> None:
    client.send(
        client.request(CREATE, create_body("file")),
        _related(client, WRITE, _write_body(ALL_ONES, b"12345")),
        _related(client, READ, _read_body(ALL_ONES, 5)),
        _related(client, QUERY_INFO, _query_body()),
        _related(client, CLOSE, close_body(ALL_ONES)),
    )
    answers = client.receive()
    assert [answer.command for answer in answers] == [CREATE, WRITE, READ, QUERY_INFO, CLOSE]
    assert not any(answer.status for answer in answers)
    assert answers[2].body[16:21] == b"12345"
    assert all(answer.flags & IS_RELATED for answer in answers[1:])
    assert all(len(answer.message) % 8 == 0 for answer in answers[:-1])


def test_a_pipe_cannot_be_used_as_a_file_of_another_tree_of_the_chain(client: RawClient, sdk: ShareClient) -> None:
    assert client.connect_tree("IPC$").status == 0
    share = rf"\\server\{sdk.share_name}".encode("utf-16-le")
    client.send(
        client.request(CREATE, create_body("srvsvc")),
        _related(client, TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(share)) + share),
        _related(client, READ, _read_body(ALL_ONES, 5)),
    )
    statuses = [answer.status for answer in client.receive()]
    assert statuses == [0, 0, Status.INVALID_DEVICE_REQUEST]


def test_every_answer_of_a_chain_is_signed(client: RawClient) -> None:
    client.send(client.request(CREATE, create_body("file")), _related(client, CLOSE, close_body(ALL_ONES)))
    for answer in client.receive():
        unsigned = answer.message[:48] + bytes(16) + answer.message[64:]
        assert client.signed(unsigned) == answer.message


def test_a_failed_create_fails_what_is_related_to_it(client: RawClient) -> None:
    client.send(
        client.request(CREATE, create_body("nothing", disposition=1)),
        _related(client, QUERY_INFO, _query_body()),
        _related(client, CLOSE, close_body(ALL_ONES)),
    )
    assert [answer.status for answer in client.receive()] == [Status.OBJECT_NAME_NOT_FOUND] * 3


def test_another_failure_does_not_stop_the_chain(client: RawClient) -> None:
    client.send(
        client.request(CREATE, create_body("file")),
        _related(client, READ, _read_body(ALL_ONES, 5)),
        _related(client, CLOSE, close_body(ALL_ONES)),
        _related(client, CLOSE, close_body(ALL_ONES)),
    )
    assert [answer.status for answer in client.receive()] == [0, Status.END_OF_FILE, 0, Status.FILE_CLOSED]


def test_the_first_request_is_related_to_nothing(client: RawClient) -> None:
    client.send(_related(client, CREATE, create_body("file")), _related(client, CLOSE, close_body(ALL_ONES)))
    assert [answer.status for answer in client.receive()] == [Status.INVALID_PARAMETER] * 2


def test_an_unrelated_request_begins_again(client: RawClient) -> None:
    client.send(
        client.request(CREATE, create_body("file")),
        client.request(CLOSE, close_body(ALL_ONES)),
        client.request(ECHO, EMPTY),
    )
    answers = client.receive()
    assert [answer.status for answer in answers] == [0, Status.FILE_CLOSED, 0]
    assert client.ask(CLOSE, close_body(file_id_of(answers[0]))).status == 0


@pytest.mark.parametrize("following", [4, 63, 64, 65, 100, 1 << 20])
def test_a_chain_with_wrong_lengths_ends_the_connection(client: RawClient, following: int) -> None:
    message = client.request(ECHO, EMPTY, flags=0)
    client.send_frame(message[:20] + struct.pack("<I", following) + message[24:] + bytes(40))
    assert client.is_cut()


def test_a_message_id_is_used_once(client: RawClient) -> None:
    assert client.ask(ECHO, EMPTY).status == 0
    client.send(client.request(ECHO, EMPTY, message_id=client.message_id - 1))
    assert client.is_cut()


def test_a_message_id_that_was_not_granted_ends_the_connection(client: RawClient) -> None:
    client.send(client.request(ECHO, EMPTY, message_id=1 << 40))
    assert client.is_cut()


def test_credits_have_to_pay_for_what_is_moved(client: RawClient) -> None:
    opened = client.ask(CREATE, create_body("file"))
    file_id = file_id_of(opened)
    assert client.ask(WRITE, _write_body(file_id, bytes(65537)), charge=1, credits_asked=100).status == Status.INVALID_PARAMETER
    assert client.ask(WRITE, _write_body(file_id, bytes(65537)), charge=2, credits_asked=100).status == 0
    assert client.ask(READ, _read_body(file_id, 65537), charge=1).status == Status.INVALID_PARAMETER
    assert client.ask(READ, _read_body(file_id, 65537), charge=2).status == 0
    assert client.ask(READ, _read_body(file_id, (1 << 31) + 1), charge=20).status == Status.INVALID_PARAMETER


def test_up_to_8192_credits_are_granted(client: RawClient) -> None:
    granted = client.ask(ECHO, EMPTY, credits_asked=65535).credits
    assert 7000 < granted <= 8192  # the rest was granted before
    assert client.ask(ECHO, EMPTY, credits_asked=65535).credits == 1  # only what it used


def test_a_request_that_waits_is_answered_twice(client: RawClient) -> None:
    opened = client.ask(CREATE, create_body("", options=1))
    interim = client.ask(CHANGE_NOTIFY, _notify_body(file_id_of(opened)), credits_asked=10)
    assert (interim.status, interim.flags & IS_ASYNC, interim.credits) == (Status.PENDING, IS_ASYNC, 10)
    assert client.ask(ECHO, EMPTY).status == 0  # others go on
    client.send(client.request(CANCEL, EMPTY, message_id=interim.message_id))
    (last,) = client.receive()
    assert (last.status, last.message_id, last.async_id, last.credits) == (
        Status.CANCELLED,
        interim.message_id,
        interim.async_id,
        0,
    )


def test_closing_ends_what_waits_on_the_open(client: RawClient) -> None:
    opened = client.ask(CREATE, create_body("", options=1))
    client.ask(CHANGE_NOTIFY, _notify_body(file_id_of(opened)))
    client.send(client.request(CLOSE, close_body(file_id_of(opened))))
    answers = {answer.command: answer.status for answer in (*client.receive(), *client.receive())}
    assert answers == {CHANGE_NOTIFY: Status.NOTIFY_CLEANUP, CLOSE: 0}


def test_the_last_request_of_a_chain_may_wait(client: RawClient) -> None:
    client.send(client.request(CREATE, create_body("", options=1)), _related(client, CHANGE_NOTIFY, _notify_body(ALL_ONES)))
    (opened,) = client.receive()
    assert opened.status == 0
    (interim,) = client.receive()
    assert interim.status == Status.PENDING
    client.send(client.request(CANCEL, EMPTY, message_id=interim.message_id))
    assert client.receive()[0].status == Status.CANCELLED


def test_a_request_in_the_middle_of_a_chain_may_not(client: RawClient) -> None:
    client.send(
        client.request(CREATE, create_body("", options=1)),
        _related(client, CHANGE_NOTIFY, _notify_body(ALL_ONES)),
        _related(client, CLOSE, close_body(ALL_ONES)),
    )
    assert [answer.status for answer in client.receive()] == [0, Status.INTERNAL_ERROR, 0]


def test_an_unknown_command_or_a_wrong_size_is_an_invalid_parameter(client: RawClient) -> None:
    assert client.ask(0x77, EMPTY).status == Status.INVALID_PARAMETER
    assert client.ask(ECHO, b"\x05\0\0\0").status == Status.INVALID_PARAMETER
    assert client.ask(CREATE, create_body("x")[:40]).status == Status.INVALID_PARAMETER


def test_a_lost_connection_closes_what_it_had_open(client: RawClient, account: Running, sdk: ShareClient) -> None:
    assert client.ask(CREATE, create_body("held", share=0)).status == 0
    other = RawClient(account).mounted(sdk.share_name)
    assert other.ask(CREATE, create_body("held")).status == Status.SHARING_VIOLATION
    client.close()
    for _ in range(200):
        if (status := other.ask(CREATE, create_body("held")).status) == 0:
            break
    assert status == 0
    other.close()
