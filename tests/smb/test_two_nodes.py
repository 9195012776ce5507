"""Two nodes on one PostgreSQL database: an SMB client of one node and a client of the other meet on the same files."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import ShareClient, ShareServiceClient

from tests.contract.postgres import PostgresServer
from tests.rest.running import Running, running
from tests.sdk.codes import code_of
from tests.smb.breaks import BATCH, LEVEL_II, BreakReceiver, acknowledge
from tests.smb.mounted import DIRECTORY_FILE, READ_DATA, SHARE_ALL, SHARE_NONE, WRITE_DATA, Mounted, refused
from tests.smb.raw import (
    BINDING,
    CLOSE,
    CREATE,
    ECHO,
    EMPTY,
    SESSION_SETUP,
    SMB_2_1,
    RawClient,
    close_body,
    create_body,
    file_id_of,
)
from tests.smb.requests import EXCLUSIVE_LOCK, lock, lock_message, rename, set_disposition, start, unlock
from tests.smb.test_notify import ADDED, changes, watch
from verditer.smb.status import Status


@pytest.fixture(scope="module")
def nodes(databases: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Running]]:
    database, folder = databases.make_database(), tmp_path_factory.mktemp("nodes")
    with running(folder, database=database) as first, running(folder, database=database) as second:
        yield first, second


@pytest.fixture
def sdk(nodes: tuple[Running, Running]) -> Iterator[ShareClient]:
    """A share, through the second node."""
    node = nodes[1]
    endpoint = f"http://127.0.0.1:{node.app.servers['file'].port}/{node.account}"
    with ShareServiceClient(endpoint, {"account_name": node.account, "account_key": node.key}, retry_total=0) as service:
        yield service.create_share(f"nodes-{uuid.uuid4().hex[:16]}")


@pytest.fixture
def first(nodes: tuple[Running, Running], sdk: ShareClient) -> Iterator[Mounted]:
    client = Mounted(nodes[0], sdk.share_name)
    yield client
    client.close()


@pytest.fixture
def second(nodes: tuple[Running, Running], sdk: ShareClient) -> Iterator[Mounted]:
    client = Mounted(nodes[1], sdk.share_name)
    yield client
    client.close()


def test_what_one_node_writes_the_other_reads_at_once(first: Mounted, second: Mounted, sdk: ShareClient) -> None:  # contract F5
    handle = first.make("file", b"12345")
    assert sdk.get_file_client("file").download_file().readall() == b"12345"
    assert second.get("file") == b"12345"
    sdk.get_file_client("file").upload_range(b"abc", 0, 3)
    assert handle.read(0, 5) == b"abc45"
    handle.close()


def test_handles_of_one_node_exclude_the_other(first: Mounted, second: Mounted, sdk: ShareClient) -> None:  # contract F2
    handle = first.make("file", b"12345", access=READ_DATA | WRITE_DATA, share=SHARE_NONE)
    with refused(Status.SHARING_VIOLATION):
        second.open("file", READ_DATA, SHARE_ALL)
    file = sdk.get_file_client("file")
    with pytest.raises(HttpResponseError) as error:
        file.download_file()
    assert code_of(error.value) == "SharingViolation"
    assert file.close_all_handles()["closed_handles_count"] == 1
    second.open("file", READ_DATA, SHARE_ALL).close()
    with refused(Status.FILE_CLOSED):
        handle.read(0, 1)


def test_a_delete_is_pending_for_both_nodes(first: Mounted, second: Mounted, sdk: ShareClient) -> None:  # contract F3
    handle, other = first.make("file", b"12345"), second.open("file")
    set_disposition(handle, delete=True)
    handle.close()
    file = sdk.get_file_client("file")
    with pytest.raises(HttpResponseError) as error:
        file.get_file_properties()
    assert code_of(error.value) == "SMBDeletePending"
    other.close()
    with pytest.raises(ResourceNotFoundError):
        file.get_file_properties()


def test_a_lease_of_one_node_refuses_opens_at_the_other(first: Mounted, sdk: ShareClient) -> None:  # contract F2
    first.put("file", b"12345")
    lease = sdk.get_file_client("file").acquire_lease(lease_duration=-1)
    with refused(Status.SHARING_VIOLATION):
        first.open("file", WRITE_DATA, SHARE_ALL)
    assert first.get("file") == b"12345"
    lease.release()
    handle = first.open("file", WRITE_DATA, SHARE_ALL)
    with pytest.raises(HttpResponseError) as error:
        sdk.get_file_client("file").acquire_lease(lease_duration=-1)
    assert code_of(error.value) == "SharingViolation"
    handle.close()


def test_a_lock_at_one_node_refuses_a_write_at_the_other(first: Mounted, sdk: ShareClient) -> None:  # contract F2
    handle = first.make("file", b"12345")
    lock(handle, 3, 1, EXCLUSIVE_LOCK)
    with pytest.raises(HttpResponseError) as error:
        sdk.get_file_client("file").upload_range(b"x", 0, 1)
    assert code_of(error.value) == "FileLockConflict"
    handle.close()
    sdk.get_file_client("file").upload_range(b"x", 0, 1)
    assert first.get("file") == b"x2345"


def test_a_rename_at_one_node_is_followed_at_the_other(first: Mounted, second: Mounted, sdk: ShareClient) -> None:  # contract F5
    handle = first.make("file", b"12345")
    renamed = sdk.get_file_client("file").rename_file("renamed")
    handle.write(b"abc")
    assert second.get("renamed") == renamed.download_file().readall() == b"abc45"
    rename(handle, "again")
    assert second.get("again") == b"abc45"
    handle.close()


def test_a_change_at_one_node_is_reported_to_a_watcher_at_the_other(first: Mounted, second: Mounted) -> None:
    directory = first.open("", READ_DATA, options=DIRECTORY_FILE)
    cancelled = watch(directory)
    cancelled.cancel()
    with refused(Status.CANCELLED):  # now the directory is watched
        directory.connection.receive(cancelled)
    second.put("new")
    assert changes(directory, watch(directory)) == [(ADDED, "new")]
    directory.close()


def test_a_lock_waits_for_a_client_of_the_other_node(first: Mounted, second: Mounted) -> None:
    handle, other = first.make("file"), second.open("file")
    lock(handle, 0, 10, EXCLUSIVE_LOCK)
    waiting = start(other, lock_message(other, (5, 1, EXCLUSIVE_LOCK)))
    unlock(handle, 0, 10)
    other.connection.receive(waiting)
    handle.close()
    other.close()


def test_an_oplock_is_broken_from_the_other_node(first: Mounted, sdk: ShareClient) -> None:  # contract F5
    breaks = BreakReceiver(first)
    first.put("file", b"12345")
    handle = first.open("file", oplock=BATCH)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(lambda: sdk.get_file_client("file").download_file().readall())
        assert breaks.next() == (LEVEL_II, handle.file_id)
        handle.write(b"abcde")
        acknowledge(handle, LEVEL_II)
        assert reading.result() == b"abcde"
    handle.close()


def test_a_login_at_one_node_ends_the_former_session_at_the_other(nodes: tuple[Running, Running], sdk: ShareClient) -> None:
    former, later = RawClient(nodes[0]).mounted(sdk.share_name), RawClient(nodes[1])
    opened = former.ask(CREATE, create_body("held", share=0))
    later.negotiate(SMB_2_1)
    assert later.log_in(previous=former.session_id).status == 0
    assert former.ask(CLOSE, close_body(file_id_of(opened))).status == Status.USER_SESSION_DELETED
    later.connect_tree(sdk.share_name)
    assert later.ask(CREATE, create_body("held", share=0)).status == 0
    former.close()
    later.close()


def test_a_worker_declines_a_second_connection_for_the_session_of_another(nodes: tuple[Running, Running]) -> None:
    """These nodes are two workers of one server: they share a secret. Another server knows nothing of the session."""
    client, other = RawClient(nodes[0]), RawClient(nodes[1])
    client.negotiate(SMB_2_1)
    client.log_in()
    other.negotiate(SMB_2_1)
    other.session_id = client.session_id
    assert other.ask(SESSION_SETUP, BINDING).status == Status.ACCESS_DENIED
    other.key = client.key
    answer = other.ask(SESSION_SETUP, BINDING)
    assert answer.status == Status.REQUEST_NOT_ACCEPTED
    assert client.signed(answer.message[:48] + bytes(16) + answer.message[64:]) == answer.message
    handles = nodes[1].app.ctx.handles
    shared, handles.secret = handles.secret, bytes(32)
    assert other.ask(SESSION_SETUP, BINDING).status == Status.USER_SESSION_DELETED
    handles.secret = shared
    assert client.ask(ECHO, EMPTY).status == 0
    client.close()
    other.close()
