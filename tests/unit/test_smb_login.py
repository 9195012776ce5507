"""Logins: MD4, NTLMv2 and SPNEGO, checked against published vectors and against pyspnego."""

import pytest
import spnego
from hypothesis import given
from hypothesis import strategies as st

from verditer.services.account import Account
from verditer.smb.auth import ntlm
from verditer.smb.auth import spnego as tokens
from verditer.smb.auth.acceptor import LoginAcceptor, LoginError, LoginStep, MalformedLogin
from verditer.smb.auth.failures import FailureDelays
from verditer.smb.auth.md4 import md4
from verditer.smb.auth.rc4 import rc4

KEY = b"the key of an account"
KEY_TEXT = "dGhlIGtleSBvZiBhbiBhY2NvdW50"
ACCOUNTS = {"account": Account(name="account", keys=(b"another", KEY))}


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (b"", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"a", "bde52cb31de33e46245e05fbdbd6fb24"),
        (b"abc", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "d9130a8164549fe818874806e1c7014b"),
        (b"1234567890" * 8, "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_md4_agrees_with_rfc_1320(text: bytes, digest: str) -> None:
    assert md4(text).hex() == digest


def test_rc4_agrees_with_rfc_6229() -> None:
    assert rc4(bytes.fromhex("0102030405"), bytes(16)).hex() == "b2396305f03dc027ccc3524a0a1118a8"


def test_a_response_is_checked_as_ms_nlmp_4_2_4_computes_it() -> None:
    """The user `User` of `Domain` with the password `Password`, the server challenge 0123456789abcdef."""
    nonce = bytes.fromhex("0123456789abcdef")
    pairs = "02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000"
    blob = bytes.fromhex("0101000000000000" + "00" * 8 + "aa" * 8 + "00000000" + pairs)
    proof = bytes.fromhex("68cd0ab851e51c96aabc927bebef6a1c")
    flags = int(ntlm.NtlmFlags.UNICODE)
    response = ntlm.AuthenticateMessage("User", "Domain", "COMPUTER", proof, blob, b"", flags, b"")
    assert ntlm.nt_hash("Password").hex() == "a4f49c406510bdcab6824ee7c30fd852"
    key = ntlm.session_key_of(response, nonce, [bytes(16), ntlm.nt_hash("Password")])
    assert key is not None
    assert key.hex() == "8de40ccadbc14a82f15cb0ad0de95ca3"
    assert ntlm.session_key_of(response, nonce, [ntlm.nt_hash("password")]) is None


def _client(key: str = KEY_TEXT, user: str = "account", protocol: str = "negotiate") -> spnego.ContextProxy:
    return spnego.client(user, key, protocol=protocol, options=spnego.NegotiateOptions.use_ntlm)


def _log_in(client: spnego.ContextProxy) -> tuple[LoginStep, LoginAcceptor]:
    acceptor = LoginAcceptor(ACCOUNTS, "SERVER", 0x01DB000000000000)
    challenge = acceptor.step(client.step() or b"")
    assert challenge.login is None
    return acceptor.step(client.step(challenge.token) or b""), acceptor


@pytest.mark.parametrize("protocol", ["negotiate", "ntlm"])
@pytest.mark.parametrize("user", ["account", "ACCOUNT", "AZURE\\account"])
def test_both_sides_of_a_login_have_the_same_key(protocol: str, user: str) -> None:
    client = _client(user=user, protocol=protocol)
    step, _ = _log_in(client)
    assert step.login is not None
    assert step.login.account == "account"
    if protocol == "negotiate":
        client.step(step.token)  # the client checks the server's MIC
    assert client.complete
    assert step.login.session_key == client.session_key


@pytest.mark.parametrize(("user", "key"), [("account", "wrong"), ("nobody", KEY_TEXT), ("account", "the key of an account")])
def test_a_wrong_login_is_refused(user: str, key: str) -> None:
    with pytest.raises(LoginError):
        _log_in(_client(key, user))


def test_a_changed_message_is_noticed() -> None:
    """The client asks for less than it did: the MIC over all three messages says so."""
    client, acceptor = _client(protocol="ntlm"), LoginAcceptor(ACCOUNTS, "SERVER", 0x01DB000000000000)
    first = bytearray(client.step() or b"")
    first[15] ^= 0x20  # 128-bit keys
    challenge = acceptor.step(bytes(first))
    with pytest.raises(LoginError, match="changed"):
        acceptor.step(client.step(challenge.token) or b"")


def test_ntlm_v1_is_refused() -> None:
    acceptor = LoginAcceptor(ACCOUNTS, "SERVER", 0x01DB000000000000)
    client = _client(protocol="ntlm")
    challenge = acceptor.step(client.step() or b"")
    message = bytearray(client.step(challenge.token) or b"")
    message[20:24] = (24).to_bytes(2, "little") * 2  # the length of the response
    with pytest.raises(LoginError, match="not NTLMv2"):
        acceptor.step(bytes(message))


def test_attributes_that_do_not_fit_are_malformed() -> None:
    acceptor = LoginAcceptor(ACCOUNTS, "SERVER", 0x01DB000000000000)
    client = _client(protocol="ntlm")
    challenge = acceptor.step(client.step() or b"")
    message = bytearray(client.step(challenge.token) or b"")
    at = int.from_bytes(message[24:28], "little") + 16 + 28 + 2  # the length of the first attribute
    message[at : at + 2] = b"\xff\xff"
    with pytest.raises(MalformedLogin):
        acceptor.step(bytes(message))


def test_messages_out_of_order_are_refused() -> None:
    first = _client(protocol="ntlm").step() or b""
    acceptor = LoginAcceptor(ACCOUNTS, "SERVER", 0)
    acceptor.step(first)
    with pytest.raises(LoginError, match="order"):
        acceptor.step(first)
    with pytest.raises(LoginError, match="order"):
        LoginAcceptor(ACCOUNTS, "SERVER", 0).step(first[:8] + b"\3" + first[9:])


def test_a_client_that_prefers_kerberos_is_told_to_use_ntlm() -> None:
    kerberos, ours = bytes.fromhex("06092a864886f712010202"), bytes.fromhex("060a2b06010401823702020a")
    mechanisms = b"\xa0" + bytes([len(kerberos + ours) + 2]) + b"\x30" + bytes([len(kerberos + ours)]) + kerberos + ours
    body = b"\x30" + bytes([len(mechanisms)]) + mechanisms
    inner = bytes.fromhex("06062b0601050502") + b"\xa0" + bytes([len(body)]) + body
    step = LoginAcceptor(ACCOUNTS, "SERVER", 0).step(b"\x60" + bytes([len(inner)]) + inner)
    assert step.login is None
    assert ours in step.token


def test_a_client_without_ntlm_is_refused() -> None:
    offer = tokens.first_offer().replace(bytes.fromhex("2b06010401823702020a"), bytes.fromhex("2b06010401823702020b"))
    with pytest.raises(LoginError, match="not offered"):
        LoginAcceptor(ACCOUNTS, "SERVER", 0).step(offer)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"NTLMSSP\0", b"\x60", b"\xa1", b"\x60\x48\x06\x06\x2b\x06\x01\x05\x05\x02"])
)
def test_any_bytes_are_refused_or_answered(noise: bytes, start: bytes) -> None:
    acceptor = LoginAcceptor(ACCOUNTS, "SERVER", 0)
    try:
        step = acceptor.step(start + noise)
        assert step.login is None
    except LoginError:
        pass


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_login_with_one_changed_byte_never_succeeds_as_somebody_else(at: int, value: int) -> None:
    client, acceptor = _client(), LoginAcceptor(ACCOUNTS, "SERVER", 0x01DB000000000000)
    challenge = acceptor.step(client.step() or b"")
    message = bytearray(client.step(challenge.token) or b"")
    message[at % len(message)] = value
    try:
        step = acceptor.step(bytes(message))
    except LoginError:
        return
    assert step.login is not None
    assert step.login.account == "account"


def test_every_wrong_key_doubles_the_delay_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("verditer.smb.auth.failures.monotonic", lambda: now[0])
    delays = FailureDelays(0.5, 4.0)

    def waited(host: str) -> float:
        seconds = delays.failed(host)
        now[0] += seconds
        return seconds

    assert [waited("10.0.0.1") for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert waited("10.0.0.2") == 0.5
    delays.succeeded("10.0.0.1")
    assert waited("10.0.0.1") == 0.5


def test_many_wrong_keys_at_once_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verditer.smb.auth.failures.monotonic", lambda: 1000.0)
    delays = FailureDelays(0.5, 4.0)
    assert [delays.failed("10.0.0.1") for _ in range(5)] == [0.5, 1.5, 3.5, 7.5, 11.5]
    assert max(delays.failed("10.0.0.1") for _ in range(100)) == 60.0
