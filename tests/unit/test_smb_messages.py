"""Credits, keys, signatures and encryption of SMB messages."""

import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.kbkdf import KBKDFHMAC, CounterLocation, Mode
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.errors import Code, StorageError
from verditer.smb.credits import MAX_CREDITS, CreditWindow
from verditer.smb.crypto.keys import derive_keys
from verditer.smb.crypto.sealing import CIPHERS, TRANSFORM_BYTES, Sealing, session_of_frame
from verditer.smb.crypto.signing import Signing
from verditer.smb.status import Status, status_of
from verditer.smb.wire.negotiate import Cipher, SigningAlgorithm, SmbDialect


def test_each_message_id_is_used_once() -> None:
    window = CreditWindow()
    assert window.use(0, 1)
    assert not window.use(0, 1)
    assert not window.use(1, 1)  # not granted yet
    assert window.grant(3) == 3
    assert window.use(2, 1)
    assert not window.use(2, 1)
    assert window.use(1, 1)
    assert not window.use(2, 1)


def test_a_request_may_use_several_ids() -> None:
    window = CreditWindow()
    window.use(0, 0)
    window.grant(10)
    assert window.use(1, 4)
    assert not window.use(4, 1)
    assert window.use(5, 6)
    assert not window.use(11, 1)


def test_a_hole_stops_the_grants_when_the_window_is_full() -> None:
    window = CreditWindow()
    window.use(0, 1)
    assert window.grant(65535) == MAX_CREDITS
    assert window.use(2, 1)  # 1 stays unused
    assert window.grant(1) == 0
    assert window.use(1, 1)
    assert window.grant(100) == 2


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), st.integers(0, 20)), max_size=60))
def test_the_window_agrees_with_a_set_of_ids(steps: list[tuple[int, int, int]]) -> None:
    window, allowed, top = CreditWindow(), {0}, 1
    for message_id, charge, asked in steps:
        ids = set(range(message_id, message_id + max(charge, 1)))
        assert window.use(message_id, charge) is (ids <= allowed)
        if ids <= allowed:
            allowed -= ids
        granted = window.grant(asked)
        assert granted == max(asked, 1)
        allowed |= set(range(top, top + granted))
        top += granted


@pytest.mark.parametrize("cipher_key_bytes", [16, 32])
def test_keys_are_derived_as_sp_800_108_says(cipher_key_bytes: int) -> None:
    session_key, preauth = os.urandom(16), os.urandom(64)
    keys = derive_keys(session_key, SmbDialect.SMB_3_1_1, preauth, cipher_key_bytes)
    assert keys.signing == _kbkdf(session_key, b"SMBSigningKey\0", preauth, 16)
    assert keys.client_to_server == _kbkdf(session_key, b"SMBC2SCipherKey\0", preauth, cipher_key_bytes)
    assert keys.server_to_client == _kbkdf(session_key, b"SMBS2CCipherKey\0", preauth, cipher_key_bytes)
    older = derive_keys(session_key, SmbDialect.SMB_3_0, b"", 16)
    assert older.signing == _kbkdf(session_key, b"SMB2AESCMAC\0", b"SmbSign\0", 16)


def _kbkdf(key: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """Another implementation."""
    return KBKDFHMAC(SHA256(), Mode.CounterMode, length, 4, 4, CounterLocation.BeforeFixed, label, context, None).derive(key)


def test_before_3_0_the_session_key_signs() -> None:
    assert derive_keys(b"k" * 16, SmbDialect.SMB_2_1, b"", 16).signing == b"k" * 16


@pytest.mark.parametrize("algorithm", SigningAlgorithm)
@pytest.mark.parametrize("size", [100, 200_000])
def test_a_signature_covers_every_byte_and_every_part(algorithm: SigningAlgorithm, size: int) -> None:
    signing = Signing(algorithm, os.urandom(16))
    message = bytearray(os.urandom(size))
    message[48:64] = bytes(16)
    server = signing.sign([bytes(message)], 7)
    assert signing.sign([bytes(message[:64]), memoryview(message)[64:90], bytes(message[90:])], 7) == server
    message[48:64] = server
    is_from_server = algorithm == SigningAlgorithm.AES_GMAC  # its nonce has the direction
    assert signing.verify(memoryview(bytearray(message)), 7) is not is_from_server
    message[size - 1] ^= 1
    assert not signing.verify(memoryview(message), 7)


@pytest.mark.parametrize("cipher", Cipher)
def test_what_is_sealed_can_be_opened_with_the_key_only(cipher: Cipher) -> None:
    row = CIPHERS[cipher]
    incoming, outgoing = os.urandom(row.key_bytes), os.urandom(row.key_bytes)
    server, client = Sealing(cipher, 77, incoming, outgoing), Sealing(cipher, 77, outgoing, incoming)
    frame = b"".join(server.seal([b"one part", memoryview(b" and another")]))
    assert session_of_frame(memoryview(frame)) == 77
    assert bytes(client.unseal(memoryview(frame)) or b"") == b"one part and another"
    assert server.unseal(memoryview(frame)) is None
    for at in (4, 20, 36, 42, 44, len(frame) - 1):
        changed = bytearray(frame)
        changed[at] ^= 1
        assert client.unseal(memoryview(changed)) is None


@pytest.mark.parametrize("cipher", Cipher)
def test_a_sealed_frame_is_laid_out_as_the_specification_says(cipher: Cipher) -> None:
    row = CIPHERS[cipher]
    key = os.urandom(row.key_bytes)
    header, sealed = Sealing(cipher, 5, bytes(row.key_bytes), key).seal([b"text"])
    aead = AESGCM(key) if row.is_gcm else AESCCM(key)
    assert len(header) == TRANSFORM_BYTES
    assert aead.decrypt(header[20 : 20 + row.nonce_bytes], bytes(sealed) + header[4:20], header[20:52]) == b"text"


def test_no_nonce_is_used_twice() -> None:
    sealing = Sealing(Cipher.AES_128_GCM, 1, bytes(16), bytes(16))
    assert len({sealing.seal([b"x"])[0][20:36] for _ in range(1000)}) == 1000


@pytest.mark.parametrize("code", Code)
def test_every_error_of_the_services_has_a_status(code: Code) -> None:
    status = status_of(StorageError(code))
    assert status != Status.SUCCESS
    assert (status is Status.INTERNAL_ERROR) is (code in (Code.InternalError, Code.OperationTimedOut, *_NEVER_FROM_FILES))


_NEVER_FROM_FILES = {code for code in Code if code.error_class.name in ("NOT_MODIFIED", "LENGTH_REQUIRED", "UNSUPPORTED_TYPE")}
