"""Seeds: the configuration names what an account has at the start, and a second start changes nothing."""

from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from tests.rest.running import Running, running
from verditer.config import Seed, read_settings_file
from verditer.rest.seed import SeedError
from verditer.services.account import DEVELOPMENT_ACCOUNT as ACCOUNT


def strings(server: Running) -> str:
    urls = {name: f"{server.app.url(name)}/{ACCOUNT}" for name in ("blob", "queue", "table", "file")}
    endpoints = "".join(f"{name.capitalize()}Endpoint={url};" for name, url in urls.items())
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={server.key};{endpoints}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "seeds/blob/web/index.html": b"<h1>hello</h1>",
        "seeds/blob/web/deep/er/a b.bin": bytes(range(256)) * 20_000,
        "seeds/file/team/plans/2026/plan.txt": b"plan",
        "seeds/file/team/large.bin": bytes(range(256)) * 20_000,
        "seeds/queue/jobs.json": b'["first", "a <b> & c", {"job": [1, true]}]',
        "seeds/table/Rates.json": b'[{"PartitionKey": "eur", "RowKey": "usd", "Rate": 1.25}]',
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def test_a_file_names_what_is_there_and_a_second_start_keeps_what_changed(folder: Path) -> None:
    (folder / "verditer.toml").write_text(
        f'[seed.{ACCOUNT}]\ncontainers = ["box", "$web"]\nqueues = ["mail", "jobs"]\n'
        'tables = ["Orders"]\nshares = ["home"]\nfolder = "seeds"\n'
    )
    seed = read_settings_file(folder / "verditer.toml").seed
    for start in (1, 2):
        with running(folder / "data", seed=seed) as server:
            text = strings(server)
            blobs, shares = BlobServiceClient.from_connection_string(text), ShareServiceClient.from_connection_string(text)
            assert [each.name for each in blobs.list_containers()] == ["$web", "box", "web"]
            queues = QueueServiceClient.from_connection_string(text)
            assert [each.name for each in queues.list_queues()] == ["jobs", "mail"]
            messages = [each.content for each in queues.get_queue_client("jobs").peek_messages(max_messages=10)]
            assert messages == ["first", "a <b> & c", '{"job": [1, true]}']
            tables = TableServiceClient.from_connection_string(text)
            assert sorted(each.name for each in tables.list_tables()) == ["Orders", "Rates"]
            assert tables.get_table_client("Rates").get_entity("eur", "usd")["Rate"] == 1.25
            assert [each.name for each in shares.list_shares()] == ["home", "team"]
            team = shares.get_share_client("team")
            assert team.get_file_client("plans/2026/plan.txt").download_file().readall() == b"plan"
            assert len(team.get_file_client("large.bin").download_file().readall()) == 5_120_000
            web = blobs.get_container_client("web")
            assert web.download_blob("deep/er/a b.bin").readall() == bytes(range(256)) * 20_000
            index = web.get_blob_client("index.html")
            if start == 1:
                assert index.get_blob_properties().content_settings.content_type == "text/html"
            assert index.download_blob().readall() == (b"<h1>hello</h1>" if start == 1 else b"changed")
            index.upload_blob(b"changed", overwrite=True)


@pytest.mark.parametrize(
    ("seed", "says"),
    [
        (Seed(containers=("Not Valid",)), "blob 'Not Valid' cannot be stored: InvalidResourceName"),
        (Seed(tables=("1x",)), "cannot be stored"),
        (Seed(folder="/no/such/folder"), "there is no folder /no/such/folder"),
    ],
)
def test_a_seed_that_cannot_be_stored_keeps_the_server_from_starting(tmp_path: Path, seed: Seed, says: str) -> None:
    with pytest.raises(SeedError, match=says), running(tmp_path, in_memory=True, seed={ACCOUNT: seed}):
        pass


@pytest.mark.parametrize("text", ["{", "{}", '"text"'])
def test_a_list_that_is_none_is_named(folder: Path, text: str) -> None:
    (folder / "seeds/queue/jobs.json").write_text(text)
    seed = {ACCOUNT: Seed(folder=str(folder / "seeds"))}
    with pytest.raises(SeedError, match=r"jobs\.json"), running(folder / "data", in_memory=True, seed=seed):
        pass
