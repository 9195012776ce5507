"""Account settings: from a file, from the environment, through the control API; a change takes effect at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.client import ANONYMOUS, Box, Client
from tests.rest.history import PLAIN, ask_admin, settle, settled
from tests.rest.running import Running, running
from verditer.config import SettingsFile, read_settings_file, settings_from, with_settings
from verditer.core.records.settings import SettingsChange
from verditer.flag_parser import parser
from verditer.flags import config_from
from verditer.services.account import development_accounts

ACCOUNT = "devstoreaccount1"
PAGE = f"/control/accounts/{ACCOUNT}/settings"


@pytest.fixture(autouse=True)
def plain(server: Running) -> Iterator[None]:
    with settled(server):
        yield


def test_the_control_api_shows_and_changes_settings(server: Running) -> None:
    assert ask_admin(server, "GET", PAGE) == (200, PLAIN)
    assert ask_admin(server, "PUT", PAGE, {"versioning": True}) == (200, PLAIN | {"versioning": True})
    assert ask_admin(server, "PUT", PAGE, {"blob_soft_delete_days": 3})[1]["versioning"] is True
    assert ask_admin(server, "GET", "/control/accounts/nobody/settings")[0] == 404
    assert ask_admin(server, "PUT", "/control/accounts/nobody/settings", {})[0] == 404
    assert ask_admin(server, "POST", PAGE, {})[0] == 405


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"versionin": True}, "versionin"),
        ({"versioning": "yes"}, "versioning"),
        ({"blob_soft_delete_days": 366}, "<= 365"),
        ({"container_soft_delete_days": -1}, ">= 0"),
        ({"sku": "Standard_XYZ"}, "sku"),
        ({"kind": 1}, "kind"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(server: Running, change: dict[str, object], complaint: str) -> None:
    # contract G7
    status, answer = ask_admin(server, "PUT", PAGE, {"public_access": False} | change)
    assert status == 400
    assert complaint in answer["error"]
    assert ask_admin(server, "GET", PAGE) == (200, PLAIN)


def test_without_test_control_settings_cannot_be_changed_from_outside(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True, test_control=False) as server:
        assert ask_admin(server, "PUT", PAGE, {})[0] == 404


def test_get_account_information_shows_what_is_set(server: Running, box: Box) -> None:
    settle(server, sku="Premium_LRS", kind="BlockBlobStorage", hierarchical_namespace=True)
    for path in ("/", box.path, f"{box.path}/blob"):
        reply = box.client.send("GET", path, {"restype": "account", "comp": "properties"})
        shown = (reply["x-ms-sku-name"], reply["x-ms-account-kind"], reply["x-ms-is-hns-enabled"])
        assert shown == ("Premium_LRS", "BlockBlobStorage", "true")


def test_an_account_without_public_access_lets_nobody_open_a_container(server: Running, box: Box) -> None:
    public = {"x-ms-blob-public-access": "container"}
    assert box.container("PUT", "acl", public).status == 200
    box.put()
    assert box.get(auth=ANONYMOUS).status == 200
    settle(server, public_access=False)
    assert box.get(auth=ANONYMOUS).answer == (401, "NoAuthenticationInformation")
    assert box.get(auth=ANONYMOUS, version="2018-11-09").answer == (409, "PublicAccessNotPermitted")
    assert box.container("PUT", "acl", public).answer == (409, "PublicAccessNotPermitted")
    assert box.container("PUT", "acl").status == 200
    other = Box(box.client)
    assert other.container("PUT", headers=public).answer == (409, "PublicAccessNotPermitted")
    assert other.container("PUT").status == 201
    settle(server, public_access=True)
    assert box.get(auth=ANONYMOUS).status == 401  # Set Container ACL has closed it


def test_the_store_keeps_settings_and_the_file_holds_at_every_start(tmp_path: Path) -> None:
    accounts = with_settings(
        development_accounts(), SettingsFile(accounts={ACCOUNT: SettingsChange(blob_soft_delete_days=5)}), {}
    )
    with running(tmp_path) as server:
        settle(server, versioning=True, blob_soft_delete_days=9)
    with running(tmp_path) as server:
        assert ask_admin(server, "GET", PAGE)[1] == PLAIN | {"versioning": True, "blob_soft_delete_days": 9}
    with running(tmp_path, accounts=accounts) as server:
        assert ask_admin(server, "GET", PAGE)[1] == PLAIN | {"versioning": True, "blob_soft_delete_days": 5}
        assert ask_admin(server, "POST", "/control/reset", {"account": ACCOUNT})[0] == 200
        assert ask_admin(server, "GET", PAGE)[1] == PLAIN | {"blob_soft_delete_days": 5}


def test_reset_removes_what_is_soft_deleted(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        settle(server, container_soft_delete_days=1, blob_soft_delete_days=1)
        box = Box(Client(server)).create()
        box.container("DELETE")
        ask_admin(server, "POST", "/control/reset", {"account": ACCOUNT})
        page = box.client.send("GET", "/", {"comp": "list", "include": "deleted"}).xml
        assert list(page.find("Containers") or ()) == []
        box.client.close()


# --- the file and the environment -------------------------------------------------------------------------------------------


def write(folder: Path, text: str) -> Path:
    path = folder / "verditer.toml"
    path.write_text(text)
    return path


def test_the_file_has_defaults_and_accounts_and_the_environment_wins(tmp_path: Path) -> None:
    file = read_settings_file(
        write(
            tmp_path,
            """
            [defaults]
            versioning = true
            sku = "Standard_LRS"
            container_soft_delete_days = 1

            [accounts.devstoreaccount1]
            versioning = false
            blob_soft_delete_days = 7
            """,
        )
    )
    environment = {
        "VERDITER_BLOB_SOFT_DELETE_DAYS": "8",
        "VERDITER_PUBLIC_ACCESS": "false",
        "VERDITER_SKU__DEVSTOREACCOUNT1": "Standard_ZRS",
        "VERDITER_SKU": "Standard_GRS",
        "VERDITER_KIND": "",
    }
    settings = with_settings(development_accounts(), file, environment)[ACCOUNT].settings
    assert settings.given() == {
        "versioning": False,
        "blob_soft_delete_days": 8,
        "container_soft_delete_days": 1,
        "public_access": False,
        "sku": "Standard_ZRS",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[defaults]\nversionin = true", "versionin"),
        ("[default]\nversioning = true", "default"),
        ("[defaults]\nversioning = 1", "$.defaults.versioning"),
        ("[accounts.a]\nkind = 'Nothing'", "kind"),
        ("versioning\n", "line 1"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=r"verditer\.toml: ") as error:
        read_settings_file(path)
    assert complaint in str(error.value)


def test_a_file_that_is_not_there_and_an_account_that_is_not_known_are_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: no such file"):
        read_settings_file(tmp_path / "nothing.toml")
    with pytest.raises(ValueError, match="no account 'nobody'"):
        with_settings(development_accounts(), SettingsFile(accounts={"nobody": SettingsChange()}), {})


def test_the_command_line_finds_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(*flags: str) -> dict[str, object]:
        return config_from(parser().parse_args(flags)).accounts[ACCOUNT].settings.given()

    named = tmp_path / "named.toml"
    named.write_text("[defaults]\nversioning = true\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERDITER_ACCOUNTS", raising=False)
    assert settings() == {}
    assert settings("--config", str(named)) == {"versioning": True}
    monkeypatch.setenv("VERDITER_CONFIG", str(named))
    assert settings() == {"versioning": True}
    monkeypatch.delenv("VERDITER_CONFIG")
    write(tmp_path, "[defaults]\nblob_soft_delete_days = 3\n")
    assert settings() == {"blob_soft_delete_days": 3}
    with pytest.raises(ValueError, match="cannot be read: no such file"):
        settings("--config", "nothing.toml")


def test_a_mistake_in_the_environment_is_named() -> None:
    with pytest.raises(ValueError, match="VERDITER_VERSIONING: "):
        settings_from({"VERDITER_VERSIONING": "perhaps"})
