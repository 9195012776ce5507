"""The admin port is reachable from every page that a developer visits: who may use it, and how a request proves it."""

import re
from pathlib import Path

import pytest

from tests.rest.running import ADMIN, ADMIN_TOKEN, Running, running
from tests.web.asking import Answer, ask
from verditer.config import AdminPort

PRIVATE = ["/", "/static/app.js", "/api/overview", "/api/events", "/control/clock", "/storage/blob/devstoreaccount1?comp=list"]
OPEN = ["/health/live", "/health/ready", "/metrics"]


@pytest.fixture
def cookie(server: Running) -> str:
    return start(server).headers["set-cookie"].partition(";")[0]


def start(server: Running, **headers: str) -> Answer:
    return ask(server, f"/?token={ADMIN_TOKEN}", headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("target", PRIVATE)
def test_without_a_token_nothing_is_reported(server: Running, target: str) -> None:
    answer = ask(server, target, headers={})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("target", OPEN)
def test_health_and_metrics_are_open_by_any_name(server: Running, target: str) -> None:
    """Probes address a container by names that nobody configured."""
    assert ask(server, target, headers={"Host": "storage.default.svc.cluster.local"}).status == 200


@pytest.mark.parametrize("target", [target for target in PRIVATE if target != "/api/events"])
@pytest.mark.parametrize(
    "wrong", ["", "Bearer ", "Bearer wrong", f"Basic {ADMIN_TOKEN}", f"Bearer {ADMIN_TOKEN}x", f"Bearer {ADMIN_TOKEN[:-1]}"]
)
def test_a_wrong_token_is_no_token(server: Running, target: str, wrong: str) -> None:
    assert ask(server, target, headers={"Authorization": wrong}).status == 401
    assert ask(server, f"/?token={wrong.rpartition(' ')[2] + '!'}", headers={}).status == 401


def test_a_browser_without_a_cookie_gets_a_page_that_explains(server: Running) -> None:
    answer = ask(server, "/", headers={"Accept": "text/html,*/*"})
    assert answer.status == 401
    assert b"Open the link that the server printed" in answer.body
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_the_start_link_stores_a_cookie_that_other_sites_cannot_send(server: Running) -> None:
    answer = start(server)
    assert answer.status == 200
    name, _, attributes = answer.headers["set-cookie"].partition(";")
    assert name.startswith(f"verditer-{server.admin_port}=")
    assert ADMIN_TOKEN not in name
    assert {part.strip() for part in attributes.split(";")} == {"Path=/", "HttpOnly", "SameSite=Strict"}


def test_the_token_counts_in_the_start_link_only(server: Running) -> None:
    assert ask(server, f"/api/overview?token={ADMIN_TOKEN}", headers={}).status == 401
    assert ask(server, f"/?token={ADMIN_TOKEN}", "POST", headers={}, body=b"").status == 401


def test_a_cookie_opens_pages_and_reads(server: Running, cookie: str) -> None:
    for target in ("/", "/api/overview", "/storage/blob/devstoreaccount1?comp=list"):
        assert ask(server, target, headers={"Cookie": f"other=1; {cookie}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # the same host, another port: browsers send it the cookie
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_origin_is_refused_even_with_the_cookie(
    server: Running, cookie: str, method: str, headers: dict[str, str]
) -> None:
    assert ask(server, "/api/overview", method, headers={"Cookie": cookie} | headers, body=b"").status == 403


def test_a_page_elsewhere_may_link_to_the_start_link_but_not_embed_it(server: Running) -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert start(server, **link, Sec_Fetch_Dest="document").status == 200
    assert start(server, **link, Sec_Fetch_Dest="iframe").status == 403


def test_a_write_with_a_cookie_has_to_say_which_page_sent_it(server: Running, cookie: str) -> None:
    own = {"Origin": f"http://127.0.0.1:{server.admin_port}"}
    put = "/storage/blob/devstoreaccount1/written?restype=container"
    assert ask(server, "/control/clock", "POST", headers={"Cookie": cookie}, body=b'{"seconds": 1}').status == 403
    assert ask(server, put, "PUT", headers={"Cookie": cookie, "Content-Length": "0"}).status == 403
    assert ask(server, put, "PUT", headers={"Cookie": cookie, "Content-Length": "0"} | own).status == 201
    assert ask(server, put, "DELETE", headers={"Cookie": cookie, "X-Verditer-Explorer": "1"}).status == 202


def test_a_get_that_writes_needs_the_same_proof(server: Running, cookie: str) -> None:
    """Get Messages hides messages, and an image of any page could cause it."""
    queue = "/storage/queue/devstoreaccount1/jobs"
    assert ask(server, queue, "PUT", headers=ADMIN | {"Content-Length": "0"}).status == 201
    assert ask(server, f"{queue}/messages", headers={"Cookie": cookie}).status == 403
    assert ask(server, f"{queue}/messages?peekonly=true", headers={"Cookie": cookie}).status == 200
    assert ask(server, f"{queue}/messages", headers={"Cookie": cookie, "X-Verditer-Explorer": "1"}).status == 200


@pytest.mark.parametrize(
    "name",
    ["evil.example", "evil.example:10009", "127.0.0.1.evil.example", "localhost.evil.example", "localhost:1; script-src *", ""],
)
def test_a_foreign_host_name_is_refused_also_with_the_token(server: Running, name: str) -> None:
    assert ask(server, "/api/overview", headers=ADMIN | {"Host": name}).status in (400, 421)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1", "explorer.localhost", "127.0.0.1:9", "[::1]:10009", "10.1.2.3"])
def test_names_that_no_attacker_can_register_are_served(server: Running, name: str) -> None:
    assert ask(server, "/api/overview", headers=ADMIN | {"Host": name}).status == 200


def test_names_can_be_added_and_the_port_made_read_only(tmp_path: Path) -> None:
    admin = AdminPort(token=ADMIN_TOKEN, names=("storage.example",), read_only=True)
    with running(tmp_path, in_memory=True, admin=admin) as server:
        assert ask(server, "/api/overview", headers=ADMIN | {"Host": "Storage.example:80"}).document["readOnly"] is True
        put = ask(server, "/storage/blob/devstoreaccount1/box?restype=container", "PUT", headers=ADMIN | {"Content-Length": "0"})
        assert (put.status, b"InsufficientAccountPermissions" in put.body) == (403, True)
        assert ask(server, "/control/clock", "POST", body=b'{"seconds": 1}').status == 403
        assert ask(server, "/control/clock").status == 200


def test_every_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True, admin=AdminPort()) as one, running(tmp_path, in_memory=True, admin=AdminPort()) as two:
        assert len(one.app.admin_token) >= 32
        assert one.app.admin_token != two.app.admin_token


def test_pages_may_run_only_the_scripts_of_the_explorer(server: Running) -> None:
    policy = start(server).headers["content-security-policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == f"127.0.0.1:{server.admin_port}/static/"
    assert directives["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy


def test_what_users_store_cannot_become_a_page(server: Running) -> None:
    box = "/storage/blob/devstoreaccount1/evil"
    assert ask(server, f"{box}?restype=container", "PUT", headers=ADMIN | {"Content-Length": "0"}).status == 201
    sent = ADMIN | {
        "x-ms-blob-type": "BlockBlob",
        "x-ms-blob-content-type": "text/html",
        "x-ms-blob-content-disposition": "inline",
        "x-ms-blob-cache-control": "public",
    }
    assert ask(server, f"{box}/page.html", "PUT", headers=sent, body=b"<script>alert(1)</script>").status == 201
    answer = ask(server, f"{box}/page.html")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    facts = ask(server, f"{box}/page.html", "HEAD").headers
    assert (facts["content-disposition"], facts["cache-control"]) == ("inline", "public")
    assert answer.headers["cache-control"] == "no-store"


def test_the_start_message_has_the_link(server: Running) -> None:
    from verditer.start_message import start_message

    (link,) = re.findall(r"Explorer (http://\S+)", start_message(server.app))
    assert link == f"http://127.0.0.1:{server.admin_port}/?token={ADMIN_TOKEN}"
