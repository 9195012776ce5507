"""Digests: known values, pieces compared with the whole, and errors that show both values."""

import hashlib
from base64 import b64decode, b64encode
from itertools import pairwise

import pytest

from verditer.core.errors import Code, StorageError
from verditer.rest.errors import elements_of
from verditer.stream.digest import Checksums, Digest, digest, verify

EMPTY_MD5 = "1B2M2Y8AsgTpgAmY7PhCfg=="


@pytest.mark.parametrize(
    ("data", "crc64"),
    [
        (b"", "AAAAAAAAAAA="),
        (b"Hello World", "YeJLfssylmU="),
        (b"123456789", b64encode((0xAE8B14860A799888).to_bytes(8, "little")).decode()),
    ],
)
def test_crc64_is_nvme_in_little_endian(data: bytes, crc64: str) -> None:
    assert digest(data)[1] == b64decode(crc64)


def test_md5_of_nothing_is_the_known_one() -> None:
    assert digest(b"")[0] == Digest().md5() == b64decode(EMPTY_MD5)


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2, 3), (0, 0, 4999), (64, 2048, 4000)])
def test_pieces_digest_as_the_whole(cuts: tuple[int, ...]) -> None:
    data = bytes(i * 7 % 251 for i in range(5000))
    edges = (0, *cuts, len(data))
    running = Digest()
    running.update(*(data[start:end] for start, end in pairwise(edges)))
    assert (running.md5(), running.crc64()) == digest(data)
    assert running.md5() == hashlib.md5(data).digest()


def test_a_digest_can_be_asked_on_the_way() -> None:
    running = Digest()
    running.update(b"Hello ")
    assert (running.md5(), running.crc64()) == digest(b"Hello ")
    running.update(b"World")
    assert (running.md5(), running.crc64()) == digest(b"Hello World")


def test_checksums_that_agree_or_are_absent_pass() -> None:
    md5, crc64 = digest(b"body")
    verify(Checksums(), md5, crc64)
    verify(Checksums(md5=md5), md5, crc64)
    verify(Checksums(crc64=crc64), md5, crc64)
    verify(Checksums(md5=md5, crc64=crc64), md5, crc64)


def test_a_wrong_md5_is_refused_with_both_values() -> None:
    md5, crc64 = digest(b"body")
    other = digest(b"other")[0]
    with pytest.raises(StorageError) as refused:
        verify(Checksums(md5=other), md5, crc64)
    assert refused.value.code is Code.Md5Mismatch
    assert elements_of(refused.value) == {
        "UserSpecifiedMd5": b64encode(other).decode(),
        "ServerCalculatedMd5": b64encode(md5).decode(),
    }


@pytest.mark.parametrize("specified", [bytes(8), digest(b"body")[1] + b"\0"])
def test_a_wrong_crc64_is_refused_with_both_values(specified: bytes) -> None:
    md5, crc64 = digest(b"body")
    with pytest.raises(StorageError) as refused:
        verify(Checksums(crc64=specified), md5, crc64)
    assert refused.value.code is Code.Crc64Mismatch
    assert elements_of(refused.value) == {
        "UserSpecifiedCrc64": b64encode(specified).decode(),
        "ServerCalculatedCrc64": b64encode(crc64).decode(),
    }
