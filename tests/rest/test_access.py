"""Authorization: anonymous callers at both levels, Shared Key, shared access signatures with and without a stored policy."""

import inspect

import pytest

from tests.rest.client import ANONYMOUS, KEY, VERSION, Box, Reply
from tests.rest.signing import service_sas, shared_key
from verditer.rest.http.server import HttpServer

READS = (("GET", ""), ("HEAD", ""), ("GET", "metadata"), ("GET", "blocklist"))
WRONG_KEY = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3JvbmcgaQ=="


def policy(box: Box, id: str = "p", **fields: str) -> Reply:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    body = f"<SignedIdentifiers><SignedIdentifier><Id>{id}</Id><AccessPolicy>{inner}</AccessPolicy></SignedIdentifier>"
    return box.container("PUT", "acl", body=f"{body}</SignedIdentifiers>".encode())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_private_container_asks_strangers_who_they_are(box: Box, method: str) -> None:
    box.put()
    reply = box.blob(method, auth=ANONYMOUS)
    assert reply.answer == (401, "NoAuthenticationInformation")
    assert reply["WWW-Authenticate"].startswith("Bearer authorization_uri=https://login.microsoftonline.com/")
    assert box.blob(method, auth=ANONYMOUS, version="2018-03-28").answer == (404, "ResourceNotFound")
    assert Box(box.client).blob(method, auth=ANONYMOUS).status == 401  # the response does not reveal whether the container exists


def test_public_blobs_can_be_read_and_not_listed(box: Box) -> None:
    # contract G2
    box.put()
    assert box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"}).status == 200
    for method, comp in READS:
        assert box.blob(method, comp=comp, auth=ANONYMOUS).status == 200, (method, comp)
    assert box.page(auth=ANONYMOUS).status == 401
    assert box.container("GET", auth=ANONYMOUS).status == 401


def test_a_public_container_can_be_read_and_listed(box: Box) -> None:
    # contract G2
    box.put()
    box.container("PUT", "acl", {"x-ms-blob-public-access": "container"})
    for method, comp in READS:
        assert box.blob(method, comp=comp, auth=ANONYMOUS).status == 200, (method, comp)
    assert box.page(auth=ANONYMOUS).status == 200
    assert box.container("GET", auth=ANONYMOUS).status == 200
    assert box.container("GET", "metadata", auth=ANONYMOUS).status == 200
    box.container("PUT", "acl")
    assert box.get(auth=ANONYMOUS).status == 401


def test_strangers_never_write(box: Box) -> None:
    box.put(body=b"kept")
    box.container("PUT", "acl", {"x-ms-blob-public-access": "container"})
    for reply in (
        box.put(body=b"new", auth=ANONYMOUS),
        box.blob("DELETE", auth=ANONYMOUS),
        box.blob("PUT", comp="metadata", auth=ANONYMOUS),
        box.blob("PUT", comp="snapshot", auth=ANONYMOUS),
        box.lease("acquire", auth=ANONYMOUS),
        box.container("DELETE", auth=ANONYMOUS),
    ):
        assert reply.answer == (401, "NoAuthenticationInformation")
    assert box.get().body == b"kept"


@pytest.mark.parametrize(
    ("authorization", "answer"),
    [
        ("SharedKey devstoreaccount1:AAAA", (403, "AuthenticationFailed")),
        ("SharedKey someoneelse:AAAA", (403, "AuthenticationFailed")),
        ("SharedKey", (400, "InvalidAuthenticationInfo")),
        ("Basic dXNlcjpwYXNz", (400, "InvalidAuthenticationInfo")),
    ],
)
def test_a_bad_authorization_header_is_refused(box: Box, authorization: str, answer: tuple[int, str]) -> None:
    headers = {"Authorization": authorization, "x-ms-date": box.client.date()}
    assert box.page(headers=headers, auth=ANONYMOUS).answer == answer


@pytest.mark.parametrize("seconds", [-16 * 60, 16 * 60])
def test_an_old_request_cannot_be_sent_again(box: Box, seconds: int) -> None:
    path = f"/{box.server.account}{box.path}/blob"
    headers = [("x-ms-version", "2021-08-06"), ("x-ms-date", box.client.date(seconds))]
    signed = shared_key(box.server.account, box.server.key, "GET", path, "", headers)
    reply = box.client.exchange("GET", path, [*headers, ("Authorization", signed)])
    assert reply.answer == (403, "AuthenticationFailed")


def test_a_signature_and_a_sas_exclude_each_other(box: Box) -> None:
    headers = {"Authorization": "SharedKey devstoreaccount1:AAAA", "x-ms-date": box.client.date()}
    assert box.page(headers=headers, auth=box.sas("l")).answer == (403, "AuthenticationFailed")


OPERATIONS = {  # sufficient permissions of a service SAS of the container → requests
    "r": (("GET", ""), ("HEAD", ""), ("GET", "metadata"), ("GET", "blocklist")),
    "w": (("PUT", "metadata"), ("PUT", "properties"), ("PUT", "lease"), ("PUT", "blocklist")),
    "cw": (("PUT", "snapshot"),),
    "d": (("DELETE", ""),),
}


@pytest.mark.parametrize("letter", list("racwdxyltfmeopi"))
@pytest.mark.parametrize("kind", ["account", "container", "blob"])
def test_a_sas_does_what_its_letters_say_and_no_more(box: Box, kind: str, letter: str) -> None:
    auths = {"account": box.client.account_sas(letter), "container": box.sas(letter), "blob": box.sas(letter, blob="blob")}
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    for letters, requests in OPERATIONS.items():
        for method, comp in requests:
            box.put()
            body = b"<BlockList />" if (method, comp) == ("PUT", "blocklist") else None
            reply = box.blob(method, comp=comp, headers=lease if comp == "lease" else None, body=body, auth=auths[kind])
            if letter in letters:
                assert reply.status < 300, (method, comp)
            else:
                assert reply.answer == (403, "AuthorizationPermissionMismatch"), (method, comp)
            if comp == "lease" and reply.status == 201:
                box.lease("break", {"x-ms-lease-break-period": "0"})
            box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"})


def test_listing_needs_l_and_a_sas_that_reaches_the_container(box: Box) -> None:
    box.put()
    assert box.page(auth=box.sas("l")).status == 200
    assert box.page(auth=box.sas("r")).answer == (403, "AuthorizationPermissionMismatch")
    assert box.page(auth=box.client.account_sas("l")).status == 200
    assert box.page(auth=box.sas("l", blob="blob")).answer == (403, "AuthenticationFailed")


def test_a_container_is_out_of_reach_of_its_own_sas(box: Box) -> None:
    every = box.sas("racwdxltfmei")
    assert box.container("GET", auth=every).answer == (403, "AuthorizationFailure")
    assert box.container("PUT", "metadata", auth=every).answer == (403, "AuthorizationFailure")
    assert box.container("DELETE", auth=every).answer == (403, "AuthorizationFailure")
    assert box.container("GET", auth=box.client.account_sas("r")).status == 200
    assert box.container("PUT", "metadata", auth=box.client.account_sas("w")).status == 200
    assert box.container("DELETE", auth=box.client.account_sas("d")).status == 202


def test_an_account_sas_is_for_its_services_and_resource_types(box: Box) -> None:
    box.put()
    sas = box.client.account_sas
    assert box.get(auth=sas("r", ss="q")).answer == (403, "AuthorizationServiceMismatch")
    assert box.get(auth=sas("r", srt="sc")).answer == (403, "AuthorizationResourceTypeMismatch")
    assert box.page(auth=sas("l", srt="so")).answer == (403, "AuthorizationResourceTypeMismatch")
    assert box.client.send("GET", "", {"comp": "list"}, auth=sas("l", srt="c")).answer == (
        403,
        "AuthorizationResourceTypeMismatch",
    )
    assert box.client.send("GET", "", {"comp": "list"}, auth=sas("l", srt="s")).status == 200


def test_create_alone_creates_and_never_overwrites(box: Box) -> None:
    for kind, auth in (
        ("container", box.sas("c")),
        ("blob", box.sas("c", blob="blob")),
        ("account", box.client.account_sas("c")),
    ):
        assert box.put(body=b"first", auth=auth).status == 201, kind
        assert box.put(body=b"second", auth=auth).answer == (403, "UnauthorizedBlobOverwrite")
        assert box.get().body == b"first"
        assert box.put(body=b"third", auth=box.sas("w")).status == 201
        box.blob("DELETE")


def test_since_2026_create_alone_stages_and_commits_new_blobs(box: Box) -> None:
    commit = b"<BlockList><Latest>AAAA</Latest></BlockList>"
    for version, status in (("2021-08-06", 403), ("2026-06-06", 201)):
        auth = box.sas("c", sv=version)
        assert box.blob("PUT", comp="block", query={"blockid": "AAAA"}, body=b"x", auth=auth).status == status
        assert box.blob("PUT", comp="blocklist", body=commit, auth=auth).status == status
    assert box.blob("PUT", comp="blocklist", body=b"<BlockList />", auth=auth).answer == (403, "UnauthorizedBlobOverwrite")
    assert box.get().body == b"x"


def test_a_sas_ends_and_begins_when_it_says(box: Box) -> None:
    box.put()
    moment = box.client.moment
    assert box.get(auth=box.sas("r", se=moment(-1))).answer == (403, "AuthenticationFailed")
    assert box.get(auth=box.sas("r", st=moment(60))).answer == (403, "AuthenticationFailed")
    auth = box.sas("r", st=moment(60), se=moment(120))
    box.server.move_clock(61)
    assert box.get(auth=auth).status == 200
    box.server.move_clock(60)
    reply = box.get(auth=auth)
    assert reply.answer == (403, "AuthenticationFailed")
    assert "Signature not valid in the specified time frame" in (reply.detail("AuthenticationErrorDetail") or "")


def test_a_sas_may_ask_for_an_address_and_for_https(box: Box) -> None:
    box.put()
    assert box.get(auth=box.sas("r", sip="127.0.0.1")).status == 200
    assert box.get(auth=box.sas("r", sip="127.0.0.0-127.0.0.9")).status == 200
    assert box.get(auth=box.sas("r", sip="10.0.0.1")).answer == (403, "AuthorizationSourceIPMismatch")
    assert box.get(auth=box.sas("r", spr="https,http")).status == 200
    assert box.get(auth=box.sas("r", spr="https")).answer == (403, "AuthorizationProtocolMismatch")


def test_a_sas_is_for_what_it_was_signed_for(box: Box) -> None:
    box.put("one")
    box.put("two")
    assert box.get("one", auth=box.sas("r", blob="one")).status == 200
    assert box.get("two", auth=box.sas("r", blob="one")).answer == (403, "AuthenticationFailed")
    other = Box(box.client).create()
    other.put("one")
    assert other.get("one", auth=box.sas("r")).answer == (403, "AuthenticationFailed")
    assert box.get("one", auth=box.sas("r").replace("sp=r", "sp=rw")).answer == (403, "AuthenticationFailed")
    forged = service_sas(box.server.account, WRONG_KEY, box.name, sp="r", se=box.client.moment(60))
    reply = box.get("one", auth=forged)
    assert reply.answer == (403, "AuthenticationFailed")
    assert "Signature did not match" in (reply.detail("AuthenticationErrorDetail") or "")


def test_a_snapshot_may_have_a_sas_of_its_own(box: Box) -> None:
    box.put()
    moments = [box.blob("PUT", comp="snapshot")["x-ms-snapshot"] for _ in range(2)]
    auth = box.sas("r", blob="blob", sr="bs", snapshot=moments[0])
    assert box.get(query={"snapshot": moments[0]}, auth=auth).status == 200
    assert box.get(query={"snapshot": moments[1]}, auth=auth).answer == (403, "AuthenticationFailed")
    assert box.get(auth=auth).answer == (403, "AuthenticationFailed")


def test_a_sas_may_replace_what_the_blob_says_about_itself(box: Box) -> None:
    box.put(headers={"x-ms-blob-content-type": "text/plain"})
    overrides = {"rscc": "no-store", "rscd": "attachment", "rsce": "gzip", "rscl": "fr", "rsct": "a/b"}
    auth = box.sas("r", blob="blob", **overrides)
    names = ("Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Type")
    for reply in (box.get(auth=auth), box.head(auth=auth)):
        assert [reply[name] for name in names] == list(overrides.values())
    assert box.head()["Content-Type"] == "text/plain"


def test_what_a_sas_says_about_blobs_does_not_change_documents(box: Box) -> None:
    """A client that is told of a gzip encoding cannot read a listing."""
    box.put()
    auth = box.sas("rlt", rscc="no-store", rscd="attachment", rsce="gzip", rscl="fr", rsct="a/b")
    replies = [box.page(auth=auth), box.blob("GET", comp="blocklist", auth=auth), box.blob("GET", comp="tags", auth=auth)]
    for reply in replies:
        assert (reply.status, reply["Content-Type"]) == (200, "application/xml")
    for reply in (*replies, box.blob("GET", comp="metadata", auth=auth)):
        names = ("Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language")
        assert [name for name in names if name in reply] == []


def test_a_stored_policy_decides_and_counts_at_once(box: Box) -> None:
    # contract G2
    box.put()
    auth = box.sas(si="p")
    assert box.get(auth=auth).answer == (403, "AuthenticationFailed")
    policy(box, Permission="r", Expiry=box.client.moment(3600))
    assert box.get(auth=auth).status == 200
    assert box.put(auth=auth).answer == (403, "AuthorizationPermissionMismatch")
    policy(box, Permission="w", Expiry=box.client.moment(3600))
    assert box.get(auth=auth).answer == (403, "AuthorizationPermissionMismatch")
    policy(box, Permission="r", Expiry=box.client.moment(-1))
    assert box.get(auth=auth).answer == (403, "AuthenticationFailed")
    policy(box, Permission="r", Expiry=box.client.moment(3600), Start=box.client.moment(600))
    assert box.get(auth=auth).answer == (403, "AuthenticationFailed")
    box.container("PUT", "acl")
    assert box.get(auth=auth).answer == (403, "AuthenticationFailed")


def test_policy_and_token_complete_each_other_and_never_repeat(box: Box) -> None:
    box.put()
    policy(box, Permission="r")
    assert box.get(auth=box.sas(si="p", se=box.client.moment(60))).status == 200
    assert box.get(auth=box.sas(si="p")).answer == (403, "AuthenticationFailed")
    assert box.get(auth=box.sas("r", si="p", se=box.client.moment(60))).answer == (403, "AuthenticationFailed")


def test_the_account_key_opens_everything(box: Box) -> None:
    assert box.put(auth=KEY).status == 201
    assert box.get(auth=KEY).status == 200


# --- places that many requests go to are kept; nothing of a request stays there for another one ------------------------------


def test_who_was_let_in_lets_nobody_else_in(box: Box) -> None:
    for _ in range(2):
        assert box.page(auth=KEY).status == 200
        assert box.page(auth=ANONYMOUS).status == 401
        assert box.page(auth=ANONYMOUS, version="2018-03-28").answer == (404, "ResourceNotFound")


def test_a_sas_that_was_let_in_before_is_looked_at_again(box: Box) -> None:
    auth = box.sas("l", se=box.client.moment(60))
    assert [box.page(auth=auth).status for _ in range(3)] == [200, 200, 200]
    assert box.container("GET", "metadata", auth=auth).status == 403
    box.server.move_clock(61)
    assert box.page(auth=auth).answer == (403, "AuthenticationFailed")


def test_a_stored_policy_that_let_somebody_in_counts_no_longer_when_it_is_gone(box: Box) -> None:
    # contract G2
    auth = box.sas(si="p")
    policy(box, Permission="l", Expiry=box.client.moment(3600))
    assert [box.page(auth=auth).status for _ in range(2)] == [200, 200]
    policy(box, Permission="r", Expiry=box.client.moment(3600))
    assert box.page(auth=auth).answer == (403, "AuthorizationPermissionMismatch")
    box.container("PUT", "acl")
    assert box.page(auth=auth).answer == (403, "AuthenticationFailed")


def test_one_target_is_another_operation_with_another_verb(box: Box) -> None:
    query = {"restype": "container"}
    for _ in range(2):
        assert box.client.send("HEAD", f"/{box.name}", query).status == 200
        assert box.client.send("PUT", f"/{box.name}", query).answer == (409, "ContainerAlreadyExists")
        assert box.client.send("POST", f"/{box.name}", query).answer == (405, "UnsupportedHttpVerb")


def test_one_target_is_served_in_the_version_that_is_asked_for(box: Box) -> None:
    for version in ("2018-03-28", VERSION) * 2:
        assert box.page(version=version)["x-ms-version"] == version


def test_what_is_on_one_host_is_not_on_another(box: Box) -> None:
    assert box.container("PUT", "acl", {"x-ms-blob-public-access": "container"}).status == 200
    path = f"/{box.client.account}/{box.name}"
    for _ in range(2):
        assert box.client.exchange("GET", f"{path}?restype=container", [("x-ms-version", VERSION)]).status == 200
        host = f"{box.client.account}.localhost"  # here the first part of the path is a container
        reply = box.client.exchange("GET", f"{path}?restype=container", [("x-ms-version", VERSION)], host=host)
        assert reply.answer == (400, "InvalidQueryParameterValue")


def test_nobody_fills_the_memory_with_routes(box: Box) -> None:
    server = box.server.app.servers["blob"]
    assert isinstance(server, HttpServer)
    pipeline = inspect.getclosurevars(server.handler).nonlocals["handler"].__self__  # below `with_health`
    routes = pipeline._routes.routes
    routes.clear()
    for size in (10, 1000, 60_000):
        box.page(headers={"X-HTTP-Method": "x" * size}, auth=ANONYMOUS)
        box.page({"prefix": "x" * min(size, 20_000)})
    assert routes
    assert max(len(part or "") for line in routes for part in line) < 1000
