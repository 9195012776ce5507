"""SESSION_SETUP and LOGOFF: who gets in, with which dialect, signature and cipher."""

import struct
import uuid
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.connection import Ciphers, Connection, Dialects, SigningAlgorithms
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from tests.conftest import watched
from tests.rest.history import settled
from tests.rest.running import Running, running
from tests.smb.mounted import Mounted, refused
from tests.smb.raw import (
    BINDING,
    CLOSE,
    CREATE,
    ECHO,
    EMPTY,
    LOGOFF,
    SESSION_SETUP,
    SMB_2_1,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from verditer.services.account import parse_accounts
from verditer.services.file.handles.processes.sessions import forget_session
from verditer.smb.status import Status

FIRST_KEY, SECOND_KEY = "Zmlyc3Q=", "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudA=="


@pytest.fixture(scope="module")
def with_two_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    accounts = parse_accounts(f"{Running.account}:{FIRST_KEY}:{SECOND_KEY}")
    with running(tmp_path_factory.mktemp("keys"), in_memory=True, accounts=accounts) as server:
        yield server


@pytest.fixture
def client(account: Running) -> Iterator[RawClient]:
    client = RawClient(account)
    client.negotiate(SMB_2_1)
    yield client
    client.close()


def _logged_in(server: Running, user: str, key: str) -> int:
    client = RawClient(server)
    try:
        client.negotiate(SMB_2_1)
        return client.log_in(user=user, key=key).status
    finally:
        client.close()


@pytest.mark.parametrize(
    "dialect", [Dialects.SMB_2_0_2, Dialects.SMB_2_1_0, Dialects.SMB_3_0_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1]
)
def test_every_dialect_logs_in_and_signs(account: Running, sdk: ShareClient, dialect: Dialects) -> None:
    """smbprotocol also sends FSCTL_VALIDATE_NEGOTIATE_INFO with those that have it."""
    mounted = Mounted(account, sdk.share_name, dialect=dialect)
    mounted.connection.echo()
    mounted.tree.disconnect()
    mounted.session.disconnect()
    mounted.close()


@pytest.mark.parametrize("dialect", [Dialects.SMB_3_0_0, Dialects.SMB_3_0_2, Dialects.SMB_3_1_1])
def test_every_dialect_from_3_0_on_encrypts(account: Running, sdk: ShareClient, dialect: Dialects) -> None:
    mounted = Mounted(account, sdk.share_name, dialect=dialect, encrypted=True)
    mounted.tree.disconnect()
    mounted.close()


@pytest.mark.parametrize("cipher", [Ciphers.AES_128_CCM, Ciphers.AES_128_GCM, Ciphers.AES_256_CCM, Ciphers.AES_256_GCM])
def test_every_cipher_works(account: Running, sdk: ShareClient, cipher: int) -> None:
    connection = Connection(uuid.uuid4(), "127.0.0.1", account.app.servers["smb"].port)
    connection.connect(preferred_encryption_algos=[cipher], timeout=20)
    session = Session(connection, account.account, account.key, require_encryption=True)
    session.connect()
    TreeConnect(session, rf"\\127.0.0.1\{sdk.share_name}").connect()
    assert connection.cipher_id == cipher
    connection.disconnect()


@pytest.mark.parametrize("algorithm", [SigningAlgorithms.HMAC_SHA256, SigningAlgorithms.AES_CMAC, SigningAlgorithms.AES_GMAC])
def test_every_signature_works(account: Running, sdk: ShareClient, algorithm: int) -> None:
    connection = Connection(uuid.uuid4(), "127.0.0.1", account.app.servers["smb"].port)
    connection.connect(preferred_signing_algos=[algorithm], timeout=20)
    session = Session(connection, account.account, account.key, require_encryption=False)
    session.connect()
    TreeConnect(session, rf"\\127.0.0.1\{sdk.share_name}").connect()
    assert connection.signing_algorithm_id == algorithm
    connection.disconnect()


def test_either_key_logs_in(with_two_keys: Running) -> None:
    assert _logged_in(with_two_keys, Running.account, FIRST_KEY) == 0
    assert _logged_in(with_two_keys, Running.account, SECOND_KEY) == 0


@pytest.mark.parametrize("user", [Running.account.upper(), rf"AZURE\{Running.account}", rf"localhost\{Running.account}"])
def test_the_case_of_the_name_and_the_domain_do_not_matter(account: Running, user: str) -> None:
    assert _logged_in(account, user, account.key) == 0


@pytest.mark.parametrize(("user", "key"), [(Running.account, "d3Jvbmc="), ("nobody", Running.key), (Running.account, " ")])
def test_a_wrong_key_or_name_is_a_logon_failure(account: Running, user: str, key: str) -> None:
    client = RawClient(account)
    client.negotiate(SMB_2_1)
    assert client.log_in(user=user, key=key).status == Status.LOGON_FAILURE
    assert client.setup(b"x").status == Status.USER_SESSION_DELETED  # the session is forgotten
    client.close()


def test_ntlm_without_spnego_logs_in(client: RawClient) -> None:
    assert client.log_in(raw=True).status == 0


@pytest.mark.parametrize(
    "token", [b"", b"\x60\x84\xff\xff\xff\xff", b"\x60\x02\x06\x00", b"NTLMSSP\0\x03\0\0\0" + bytes(60), b"\0" * 16]
)
def test_a_token_that_is_none_is_a_logon_failure(client: RawClient, token: bytes) -> None:
    assert client.setup(token).status == Status.LOGON_FAILURE


def test_a_session_on_a_second_connection_is_declined(client: RawClient, account: Running) -> None:
    """Under the signature of the session; without it nobody learns more than that it is not theirs."""
    client.log_in()
    other = RawClient(account)
    other.negotiate(SMB_2_1)
    other.session_id = client.session_id
    assert other.setup(b"x", flags=1).status == Status.ACCESS_DENIED
    other.key = client.key
    answer = other.ask(SESSION_SETUP, BINDING)
    assert answer.status == Status.REQUEST_NOT_ACCEPTED
    assert client.signed(answer.message[:48] + bytes(16) + answer.message[64:]) == answer.message
    other.session_id = 77
    assert other.ask(SESSION_SETUP, BINDING).status == Status.USER_SESSION_DELETED
    other.close()


def test_a_session_that_logged_off_is_deleted(client: RawClient) -> None:
    client.log_in()
    assert client.ask(LOGOFF, EMPTY).status == 0
    assert client.connect_tree("anything").status == Status.USER_SESSION_DELETED


def test_requests_without_a_session_are_refused(client: RawClient) -> None:
    assert client.connect_tree("anything").status == Status.USER_SESSION_DELETED
    assert client.ask(5, create_body("x")).status == Status.USER_SESSION_DELETED


def test_an_unsigned_request_is_denied(client: RawClient, sdk: ShareClient) -> None:
    client.log_in()
    client.connect_tree(sdk.share_name)
    assert client.ask(5, create_body("x"), flags=0).status == Status.ACCESS_DENIED


def test_a_wrong_signature_is_denied(client: RawClient) -> None:
    client.log_in()
    client.key = bytes(16)
    assert client.ask(LOGOFF, EMPTY).status == Status.ACCESS_DENIED


def test_an_unsigned_tree_connect_of_3_1_1_ends_the_connection(account: Running, sdk: ShareClient) -> None:
    mounted = Mounted(account, sdk.share_name)
    mounted.session.signing_required = False
    with pytest.raises(Exception, match=r"closed|Connection"):
        TreeConnect(mounted.session, rf"\\127.0.0.1\{sdk.share_name}").connect()


def test_a_login_ends_the_former_session_that_it_names(client: RawClient, account: Running) -> None:
    client.log_in()
    other = RawClient(account)
    other.negotiate(SMB_2_1)
    assert other.log_in(previous=client.session_id).status == 0
    assert client.ask(LOGOFF, EMPTY).status == Status.USER_SESSION_DELETED
    other.close()


def test_a_login_closes_the_handles_of_a_former_session_that_nobody_knows(
    client: RawClient, account: Running, sdk: ShareClient
) -> None:
    """As after a crash of the machine, which may take the record of a session and leave its handles."""
    client.log_in()
    client.connect_tree(sdk.share_name)
    opened = client.ask(CREATE, create_body("held", share=0))
    assert opened.status == 0
    account.run(forget_session(account.app.ctx, client.session_id))
    other = RawClient(account)
    other.negotiate(SMB_2_1)
    assert other.log_in(previous=client.session_id).status == 0
    other.connect_tree(sdk.share_name)
    assert other.ask(CREATE, create_body("held", share=0)).status == 0
    assert client.ask(CLOSE, close_body(file_id_of(opened))).status in (0, Status.FILE_CLOSED)
    other.close()


def test_a_session_may_log_in_again_and_keeps_its_keys(client: RawClient) -> None:
    client.log_in()
    key, session = client.key, client.session_id
    client.key = b""
    assert client.log_in().status == 0
    assert client.session_id == session
    client.key = key
    assert client.ask(LOGOFF, EMPTY).status == 0


def test_a_session_that_logs_in_again_as_nobody_opens_nothing_new(client: RawClient, sdk: ShareClient) -> None:
    client.log_in()
    client.connect_tree(sdk.share_name)
    opened = client.ask(CREATE, create_body("file"))
    key, client.key = client.key, b""
    client.setup(b"NTLMSSP\0\x01\0\0\0" + struct.pack("<I", 0x201) + bytes(16))
    nobody = b"NTLMSSP\0\x03\0\0\0" + struct.pack("<HHI", 0, 0, 64) * 6 + struct.pack("<I", 0x201)
    assert client.setup(nobody).status == 0
    client.key = key
    assert client.ask(CREATE, create_body("other")).status == Status.ACCESS_DENIED
    assert client.connect_tree(sdk.share_name).status == Status.ACCESS_DENIED
    assert client.ask(CLOSE, close_body(file_id_of(opened))).status == 0


def test_nobody_cannot_log_in_first(client: RawClient) -> None:
    client.session_id = client.setup(b"NTLMSSP\0\x01\0\0\0" + struct.pack("<I", 0x201) + bytes(16)).session_id
    nobody = b"NTLMSSP\0\x03\0\0\0" + struct.pack("<HHI", 0, 0, 64) * 6 + struct.pack("<I", 0x201)
    assert client.setup(nobody).status == Status.LOGON_FAILURE


def test_echo_needs_no_session(client: RawClient) -> None:
    assert client.ask(ECHO, EMPTY).status == 0


def test_a_server_that_requires_encryption_refuses_what_cannot(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("sealed"), in_memory=True, smb_encryption=True) as server:
        for _ in watched(server):
            assert _logged_in(server, server.account, server.key) == Status.ACCESS_DENIED
            connection = Connection(uuid.uuid4(), "127.0.0.1", server.app.servers["smb"].port)
            connection.connect(dialect=Dialects.SMB_3_0_2, timeout=20)
            session = Session(connection, server.account, server.key, require_encryption=False)
            session.connect()
            assert session.encrypt_data
            session.encrypt_data = False
            with refused(Status.ACCESS_DENIED):
                TreeConnect(session, r"\\127.0.0.1\IPC$").connect()
            session.encrypt_data = True
            TreeConnect(session, r"\\127.0.0.1\IPC$").connect()
            connection.disconnect()


def test_the_file_service_can_require_encryption(with_two_keys: Running) -> None:
    from verditer.core.names import AccountName
    from verditer.core.records.account import ProtocolSettings
    from verditer.services.properties import SetServiceProperties, set_service_properties

    def change(required: bool) -> None:
        request = SetServiceProperties(protocol_settings=ProtocolSettings(smb_encryption_required=required))
        with_two_keys.run(set_service_properties(with_two_keys.app.ctx, AccountName(Running.account, "file"), request))

    change(True)
    assert _logged_in(with_two_keys, Running.account, FIRST_KEY) == Status.ACCESS_DENIED
    change(False)
    assert _logged_in(with_two_keys, Running.account, FIRST_KEY) == 0


def test_a_share_can_require_encryption(account: Running, sdk: ShareClient) -> None:
    share = rf"\\127.0.0.1\{sdk.share_name}"
    with settled(account, smb_encrypted_shares=[sdk.share_name]):
        with refused(Status.ACCESS_DENIED):
            Mounted(account, sdk.share_name, dialect=Dialects.SMB_2_1_0)
        mounted = Mounted(account, sdk.share_name, dialect=Dialects.SMB_3_1_1, encrypted=True)
        tree = TreeConnect(mounted.session, share)
        tree.connect()
        assert tree.encrypt_data
        mounted.session.encrypt_data = tree.encrypt_data = False
        with refused(Status.ACCESS_DENIED):
            tree.disconnect()
    Mounted(account, sdk.share_name, dialect=Dialects.SMB_2_1_0)


def test_a_negotiation_that_was_changed_on_its_way_ends_the_connection(account: Running, sdk: ShareClient) -> None:
    connection = Connection(uuid.uuid4(), "127.0.0.1", account.app.servers["smb"].port)
    connection.connect(dialect=Dialects.SMB_3_0_0, timeout=20)
    connection.client_guid = uuid.uuid4()  # not the one it has sent
    session = Session(connection, account.account, account.key, require_encryption=False)
    session.connect()
    with pytest.raises((SMBResponseException, Exception)):
        TreeConnect(session, rf"\\127.0.0.1\{sdk.share_name}").connect(require_secure_negotiate=True)
