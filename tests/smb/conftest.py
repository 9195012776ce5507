"""Fixtures of the tests over SMB: a share of a steady server, mounted by an SMB client and reachable by an SDK."""

import random
import uuid
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareClient, ShareServiceClient

from tests.conftest import watched
from tests.rest.running import Running
from tests.smb.fuzzing import SEED
from tests.smb.mounted import Mounted
from tests.smb.raw import ECHO, EMPTY, RawClient


@pytest.fixture
def account(steady: Running) -> Iterator[Running]:
    yield from watched(steady)


@pytest.fixture
def sdk(account: Running) -> Iterator[ShareClient]:
    """A new share, over REST. No retries, so that the first response counts."""
    endpoint = f"http://127.0.0.1:{account.app.servers['file'].port}/{account.account}"
    credential = {"account_name": account.account, "account_key": account.key}
    with ShareServiceClient(endpoint, credential, retry_total=0) as service:
        share = service.create_share(f"smb-{uuid.uuid4().hex[:16]}")
        yield share
        share.delete_share(delete_snapshots=True)


@pytest.fixture
def mounted(account: Running, sdk: ShareClient) -> Iterator[Mounted]:
    """The same share, over SMB."""
    client = Mounted(account, sdk.share_name)
    yield client
    client.close()


@pytest.fixture
def mounted_again(account: Running, sdk: ShareClient) -> Iterator[Mounted]:
    """The same share for another SMB client."""
    client = Mounted(account, sdk.share_name)
    yield client
    client.close()


@pytest.fixture
def chance() -> random.Random:
    print(f"VERDITER_SMB_SEED={SEED}")  # shown when the test fails
    return random.Random(SEED)


@pytest.fixture
def still_serving(account: Running, sdk: ShareClient) -> Iterator[None]:
    """After every test somebody else is served as ever."""
    yield
    client = RawClient(account).mounted(sdk.share_name)
    assert client.ask(ECHO, EMPTY).status == 0
    client.close()
