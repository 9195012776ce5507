"""Certificates for the listening ports: given as PEM or PFX files, or made here for a developer's own machine.

Everything that can be wrong with a file or a password is a `CertificateError` whose text is meant for the command line.
"""

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from verditer.serving.sockets import is_ip_address

_VALID_DAYS = 825  # the longest that every common client accepts
_RENEW_DAYS = 30  # a development certificate with less than this left is replaced
# A wildcard stands for one label, so host names with an account need one for each service. OpenSSL ignores `*.localhost`,
# since it wants two labels after a wildcard: callers name such hosts one by one.
_SERVICES = ("blob", "queue", "table", "file", "dfs", "web")
_NAMES = ("localhost", "*.localhost", *(f"*.{service}.localhost" for service in _SERVICES), "127.0.0.1", "::1")


class CertificateError(ValueError):
    """A certificate, key or password that cannot be used."""


def server_context(cert: str | Path, key: str | Path | None = None, password: str | None = None) -> ssl.SSLContext:
    """`cert` is PEM (with `key`, unless the same file holds it) or PFX; `password` opens the key or the PFX."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if Path(cert).suffix.lower() in (".pfx", ".p12"):
        _load_pfx(context, Path(cert), password)
    else:
        _load_pem(context, Path(cert), Path(key) if key is not None else None, password or "")
    return context


def development_certificate(folder: Path, names: Iterable[str] = ()) -> tuple[Path, Path]:
    """The paths of a self-signed certificate for this machine and of its key; made when missing, unusable or soon expired, and
    when it lacks one of `names`, which are further host names and IP addresses."""
    cert, key = folder / "localhost.crt", folder / "localhost.key"
    hosts = [_general_name(name) for name in dict.fromkeys((*_NAMES, *names))]
    if not _still_usable(cert, key, hosts):
        folder.mkdir(parents=True, exist_ok=True)
        private_key = ec.generate_private_key(ec.SECP256R1())
        _write_private(key, private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        _write_private(cert, _self_signed(private_key, hosts).public_bytes(Encoding.PEM))
    return cert, key


def _load_pem(context: ssl.SSLContext, cert: Path, key: Path | None, password: str) -> None:
    """The password is never None: OpenSSL would ask for it at the terminal."""
    for path in (cert, key):
        if path is not None:
            _read(path)
    try:
        context.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        raise CertificateError(_pem_problem(error, cert, key or cert, password)) from None
    except (OSError, ValueError) as error:
        raise CertificateError(f"The certificate {cert} cannot be used: {error}.") from None


def _pem_problem(error: ssl.SSLError, cert: Path, key: Path, password: str) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"The key {key} does not belong to the certificate {cert}."
    if b"ENCRYPTED" in _read(key):
        return f"The password of the key {key} is wrong." if password else f"The key {key} needs a password."
    if b"CERTIFICATE-----" not in _read(cert):
        return f"The file {cert} holds no PEM certificate."
    if b"PRIVATE KEY-----" not in _read(key):
        return f"The file {key} holds no PEM private key."
    return f"The certificate {cert} with the key {key} cannot be used: {error.reason or error}."


def _load_pfx(context: ssl.SSLContext, path: Path, password: str | None) -> None:
    content = _read(path)
    try:
        key, cert, chain = load_key_and_certificates(content, password.encode() if password else None)
    except ValueError:
        raise CertificateError(
            f"The file {path} is not a PFX file, or its password is {'wrong' if password else 'missing'}."
        ) from None
    if key is None or cert is None:
        raise CertificateError(f"The file {path} has to hold a certificate and its private key.")
    once = secrets.token_hex()  # OpenSSL loads keys from files only: this one is unreadable from the moment it is written
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once.encode()))
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem + b"".join(each.public_bytes(Encoding.PEM) for each in (cert, *chain)))
        file.flush()
        _load_pem(context, Path(file.name), None, once)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"The file {path} cannot be read: {error.strerror}.") from None


def _still_usable(cert: Path, key: Path, hosts: list[x509.GeneralName]) -> bool:
    try:
        server_context(cert, key)
        found = x509.load_pem_x509_certificate(_read(cert))
        named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return set(hosts) <= set(named) and found.not_valid_after_utc > datetime.now(UTC) + timedelta(days=_RENEW_DAYS)


def _general_name(name: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(name)) if is_ip_address(name) else x509.DNSName(name)


def _self_signed(key: ec.EllipticCurvePrivateKey, hosts: list[x509.GeneralName]) -> x509.Certificate:
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Verditer development certificate")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ a little
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _write_private(path: Path, content: bytes) -> None:
    """Never readable by others, and never half written."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:  # mode 0600
        file.write(content)
    os.replace(file.name, path)
