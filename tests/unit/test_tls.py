"""Certificates: loading errors have a reason; the development certificate is valid for this machine and private."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from verditer.config import Config
from verditer.parts import tls_of
from verditer.serving import tls


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tls.development_certificate(tmp_path_factory.mktemp("tls"))


def locked_key(key: Path, folder: Path, password: str) -> Path:
    private_key = load_pem_private_key(key.read_bytes(), None)
    path = folder / "locked.key"
    path.write_bytes(private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())))
    return path


def pfx(pair: tuple[Path, Path], folder: Path, password: str | None) -> Path:
    cert = x509.load_pem_x509_certificate(pair[0].read_bytes())
    key = load_pem_private_key(pair[1].read_bytes(), None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    path = folder / "server.pfx"
    path.write_bytes(serialize_key_and_certificates(b"verditer", key, cert, None, encryption))  # type: ignore[arg-type]
    return path


def handshake(server: ssl.SSLContext, trusted: Path, host: str) -> str | None:
    """A TLS handshake in memory; returns the negotiated version."""
    client = ssl.create_default_context(cafile=str(trusted))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname=host)
    other = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [one, other]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return one.version()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "any.blob.localhost", "any.web.localhost"])
def test_the_development_certificate_is_good_for_this_machine(pair: tuple[Path, Path], host: str) -> None:
    assert handshake(tls.server_context(*pair), pair[0], host) == "TLSv1.3"


def test_the_development_certificate_is_not_good_for_another_host(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tls.server_context(*pair), pair[0], "example.org")


def test_the_development_certificate_is_good_for_accounts_and_for_the_names_that_are_given(tmp_path: Path) -> None:
    config = Config(location=tmp_path, development_tls=True)
    for names in ((), ("azurite", "*.example.com", "192.168.0.7")):  # the second time, there is a certificate without them
        context = tls_of(msgspec.structs.replace(config, tls_names=names))
        assert context is not None
        for host in ("devstoreaccount1.localhost", "devstoreaccount1-secondary.localhost", *names):
            assert handshake(context, tmp_path / "tls" / "localhost.crt", host.replace("*", "storage")) == "TLSv1.3"


def test_the_development_certificate_is_readable_by_its_owner_only(pair: tuple[Path, Path]) -> None:
    assert [stat.S_IMODE(path.stat().st_mode) for path in pair] == [0o600, 0o600]


def test_the_development_certificate_is_made_once(tmp_path: Path) -> None:
    first = tls.development_certificate(tmp_path / "new" / "folder")[0].read_bytes()
    assert tls.development_certificate(tmp_path / "new" / "folder")[0].read_bytes() == first


def test_a_development_certificate_about_to_expire_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "_VALID_DAYS", 29)
    first = tls.development_certificate(tmp_path)[0].read_bytes()
    monkeypatch.undo()
    renewed = x509.load_pem_x509_certificate(tls.development_certificate(tmp_path)[0].read_bytes())
    assert renewed.public_bytes(Encoding.PEM) != first
    assert renewed.not_valid_after_utc > datetime.now(UTC) + timedelta(days=365)


def test_a_development_certificate_without_its_key_is_replaced(tmp_path: Path) -> None:
    _, key = tls.development_certificate(tmp_path)
    key.unlink()
    tls.server_context(*tls.development_certificate(tmp_path))


def test_certificate_and_key_may_share_one_file(pair: tuple[Path, Path], tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(pair[1].read_bytes() + pair[0].read_bytes())
    assert handshake(tls.server_context(both), pair[0], "localhost") == "TLSv1.3"


def test_a_locked_key_opens_with_its_password(pair: tuple[Path, Path], tmp_path: Path) -> None:
    context = tls.server_context(pair[0], locked_key(pair[1], tmp_path, "secret"), "secret")
    assert handshake(context, pair[0], "localhost") == "TLSv1.3"


@pytest.mark.parametrize("password", ["secret", None])
def test_a_pfx_file_brings_certificate_and_key(pair: tuple[Path, Path], tmp_path: Path, password: str | None) -> None:
    context = tls.server_context(pfx(pair, tmp_path, password), password=password)
    assert handshake(context, pair[0], "127.0.0.1") == "TLSv1.3"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("wrong", "The password of the key .* is wrong"),
        (None, "The key .* needs a password"),
    ],
)
def test_a_locked_key_says_what_is_wrong(pair: tuple[Path, Path], tmp_path: Path, given: str | None, problem: str) -> None:
    with pytest.raises(tls.CertificateError, match=problem):
        tls.server_context(pair[0], locked_key(pair[1], tmp_path, "secret"), given)


@pytest.mark.parametrize(("given", "problem"), [("wrong", "password is wrong"), (None, "password is missing")])
def test_a_locked_pfx_says_what_is_wrong(pair: tuple[Path, Path], tmp_path: Path, given: str | None, problem: str) -> None:
    with pytest.raises(tls.CertificateError, match=problem):
        tls.server_context(pfx(pair, tmp_path, "secret"), password=given)


def test_a_missing_file_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(tls.CertificateError, match=r"none\.crt cannot be read: No such file"):
        tls.server_context(tmp_path / "none.crt", pair[1])
    with pytest.raises(tls.CertificateError, match=r"none\.key cannot be read: No such file"):
        tls.server_context(pair[0], tmp_path / "none.key")
    with pytest.raises(tls.CertificateError, match=r"none\.pfx cannot be read: No such file"):
        tls.server_context(tmp_path / "none.pfx")


def test_a_file_of_another_kind_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a certificate")
    with pytest.raises(tls.CertificateError, match=r"notes\.txt holds no PEM certificate"):
        tls.server_context(text, pair[1])
    with pytest.raises(tls.CertificateError, match=r"notes\.txt holds no PEM private key"):
        tls.server_context(pair[0], text)
    with pytest.raises(tls.CertificateError, match=r"holds no PEM private key"):
        tls.server_context(pair[0])


def test_a_key_of_another_certificate_says_so(pair: tuple[Path, Path], tmp_path: Path) -> None:
    _, other = tls.development_certificate(tmp_path)
    with pytest.raises(tls.CertificateError, match="does not belong to the certificate"):
        tls.server_context(pair[0], other)
