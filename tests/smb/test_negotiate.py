"""NEGOTIATE: the dialect, and the algorithms of 3.1.1. Whatever is wrong ends the connection or is answered with a status."""

import struct
from collections.abc import Iterator
from typing import cast

import pytest

from tests.rest.running import Running
from tests.smb.raw import SMB_2_0_2, SMB_2_1, SMB_3_0, SMB_3_0_2, SMB_3_1_1, Answer, RawClient
from verditer.smb.status import Status

PREAUTH, ENCRYPTION, SIGNING = 1, 2, 8
LARGE_MTU, ENCRYPTION_CAPABILITY = 0x4, 0x40


@pytest.fixture
def client(account: Running) -> Iterator[RawClient]:
    client = RawClient(account)
    yield client
    client.close()


def _contexts(*contexts: tuple[int, bytes]) -> bytes:
    built = b""
    for kind, data in contexts:
        built += bytes(-len(built) % 8) + struct.pack("<HHI", kind, len(data), 0) + data
    return built


def _list(*numbers: int) -> bytes:
    return struct.pack(f"<H{len(numbers)}H", len(numbers), *numbers)


def _preauth(algorithm: int = 1) -> tuple[int, bytes]:
    return PREAUTH, struct.pack("<HHH", 1, 4, algorithm) + b"salt"


def _chosen(answer: Answer) -> dict[int, int]:
    """What each context of the answer chooses."""
    (count,) = struct.unpack_from("<H", answer.body, 6)
    (at,) = struct.unpack_from("<I", answer.body, 60)
    found = {}
    for _ in range(count):
        kind, length, _ = struct.unpack_from("<HHI", answer.message, at)
        data = answer.message[at + 8 : at + 8 + length]
        found[kind] = int.from_bytes(data[4:6] if kind == PREAUTH else data[2:4], "little")
        at += 8 + length + (-length % 8)
    return found


def _dialect(answer: Answer) -> int:
    return cast(int, struct.unpack_from("<H", answer.body, 4)[0])


def _capabilities(answer: Answer) -> int:
    return cast(int, struct.unpack_from("<I", answer.body, 24)[0])


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((SMB_2_0_2,), SMB_2_0_2),
        ((SMB_2_0_2, SMB_2_1), SMB_2_1),
        ((SMB_2_1, SMB_3_0), SMB_3_0),
        ((SMB_3_0_2, SMB_2_1, 0x7777), SMB_3_0_2),
    ],
)
def test_the_highest_common_dialect_is_chosen(client: RawClient, offered: tuple[int, ...], chosen: int) -> None:
    answer = client.negotiate(*offered)
    assert answer.status == 0
    assert _dialect(answer) == chosen
    assert bool(_capabilities(answer) & LARGE_MTU) is (chosen > SMB_2_0_2)


def test_no_common_dialect_is_not_supported(client: RawClient) -> None:
    assert client.negotiate(0x7777).status == Status.NOT_SUPPORTED


def test_3_0_offers_encryption_to_those_who_can(client: RawClient, account: Running) -> None:
    assert _capabilities(client.negotiate(SMB_3_0, capabilities=ENCRYPTION_CAPABILITY)) & ENCRYPTION_CAPABILITY
    other = RawClient(account)
    assert not _capabilities(other.negotiate(SMB_3_0)) & ENCRYPTION_CAPABILITY
    other.close()


def test_3_1_1_chooses_the_first_cipher_of_the_client_and_the_fastest_signature(client: RawClient) -> None:
    contexts = _contexts(_preauth(), (ENCRYPTION, _list(9, 4, 2)), (SIGNING, _list(0, 1, 2)), (5, b"name"))
    answer = client.negotiate(SMB_3_1_1, contexts=contexts, context_count=4)
    assert _dialect(answer) == SMB_3_1_1
    assert _chosen(answer) == {PREAUTH: 1, ENCRYPTION: 4, SIGNING: 2}


def test_3_1_1_answers_only_what_was_offered(client: RawClient) -> None:
    assert _chosen(client.negotiate(SMB_3_1_1, contexts=_contexts(_preauth()), context_count=1)) == {PREAUTH: 1}


def test_no_common_cipher_means_no_encryption(client: RawClient) -> None:
    contexts = _contexts(_preauth(), (ENCRYPTION, _list(77)))
    assert _chosen(client.negotiate(SMB_3_1_1, contexts=contexts, context_count=2))[ENCRYPTION] == 0


@pytest.mark.parametrize(
    ("contexts", "count", "status"),
    [
        (b"", 0, Status.INVALID_PARAMETER),
        (_contexts((ENCRYPTION, _list(1))), 1, Status.INVALID_PARAMETER),
        (_contexts(_preauth(2)), 1, Status.SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP),
        (_contexts(_preauth(), _preauth()), 2, Status.INVALID_PARAMETER),
        (_contexts((PREAUTH, b"\x01")), 1, Status.INVALID_PARAMETER),
        (_contexts(_preauth(), (SIGNING, b"\xff\xff\x00\x00")), 2, Status.INVALID_PARAMETER),
        (_contexts(_preauth()), 9, Status.INVALID_PARAMETER),
        (_contexts(_preauth()), 60000, Status.INVALID_PARAMETER),
    ],
)
def test_wrong_contexts_are_refused(client: RawClient, contexts: bytes, count: int, status: Status) -> None:
    assert client.negotiate(SMB_3_1_1, contexts=contexts, context_count=count).status == status


def test_a_second_negotiate_ends_the_connection(client: RawClient) -> None:
    client.negotiate(SMB_2_1)
    client.send(client.request(0, struct.pack("<HHHHI16sQH", 36, 1, 1, 0, 0, bytes(16), 0, SMB_2_1)))
    assert client.is_cut()


def _smb1(*dialects: bytes) -> bytes:
    names = b"".join(b"\x02" + name + b"\0" for name in dialects)
    return b"\xffSMB" + bytes([0x72]) + bytes(27) + b"\0" + struct.pack("<H", len(names)) + names


def test_an_smb1_client_is_told_to_begin_again_with_smb2(client: RawClient) -> None:
    client.send_frame(_smb1(b"NT LM 0.12", b"SMB 2.002", b"SMB 2.???"))
    (answer,) = client.receive()
    assert _dialect(answer) == 0x02FF
    client.message_id = 1
    assert _dialect(client.negotiate(SMB_2_1, SMB_3_0)) == SMB_3_0


def test_an_smb1_client_that_knows_2_0_2_only_gets_it_at_once(client: RawClient) -> None:
    client.send_frame(_smb1(b"NT LM 0.12", b"SMB 2.002"))
    (answer,) = client.receive()
    assert _dialect(answer) == SMB_2_0_2
    client.message_id = 1
    assert client.log_in().status == 0


@pytest.mark.parametrize("frame", [_smb1(b"NT LM 0.12"), b"\xffSMB\x73" + bytes(60), b"\xffSMB" + bytes(60)])
def test_smb1_itself_is_not_served(client: RawClient, frame: bytes) -> None:
    client.send_frame(frame)
    assert client.is_cut()
