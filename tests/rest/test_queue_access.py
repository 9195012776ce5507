"""Authorization of queue operations: Shared Key, Lite, account SAS, service SAS with and without a stored policy, anonymous."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from email.utils import formatdate

import pytest

from tests.rest.client import ANONYMOUS, VERSION, Reply
from tests.rest.queues import QueueBox, QueueClient, document, found, queue_sas
from tests.rest.running import Running

Ask = Callable[[QueueBox, str], Reply]
MISMATCH = (403, "AuthorizationPermissionMismatch")
WRONG_TYPE = (403, "AuthorizationResourceTypeMismatch")
NOT_AT_ALL = (403, "AuthorizationFailure")
PROPERTIES = {"restype": "service", "comp": "properties"}


@pytest.fixture
def queue(server: Running) -> Iterator[QueueBox]:
    client = QueueClient(server)
    yield QueueBox(client).create()
    client.close()


def held(box: QueueBox) -> dict[str, str]:
    box.put()
    return box.taken()[0]


# fmt: off
OPERATIONS: dict[str, tuple[str, str, str, Ask]] = {
    #                    service  srt  account  request
    "ListQueues":        ("",      "s", "l",     lambda box, auth: box.client.send("GET", "", {"comp": "list"}, auth=auth)),
    "GetProperties":     ("",      "s", "r",     lambda box, auth: box.client.send("GET", "", PROPERTIES, auth=auth)),
    "CreateQueue":       ("",      "c", "cw",    lambda box, auth: QueueBox(box.client).queue("PUT", auth=auth)),
    "DeleteQueue":       ("",      "c", "d",     lambda box, auth: box.queue("DELETE", auth=auth)),
    "GetQueueMetadata":  ("r",     "c", "r",     lambda box, auth: box.queue("GET", "metadata", auth=auth)),
    "SetQueueMetadata":  ("",      "c", "w",     lambda box, auth: box.queue("PUT", "metadata", auth=auth)),
    "GetQueueAcl":       ("",      "",  "",      lambda box, auth: box.queue("GET", "acl", auth=auth)),
    "SetQueueAcl":       ("",      "",  "",      lambda box, auth: box.queue("PUT", "acl", auth=auth)),
    "PutMessage":        ("a",     "o", "a",     lambda box, auth: box.put(auth=auth)),
    "GetMessages":       ("p",     "o", "p",     lambda box, auth: box.get(auth=auth)),
    "PeekMessages":      ("r",     "o", "r",     lambda box, auth: box.peek(auth=auth)),
    "DeleteMessage":     ("p",     "o", "p",     lambda box, auth: box.delete(held(box), auth=auth)),
    "UpdateMessage":     ("u",     "o", "u",     lambda box, auth: box.update(held(box), 1, auth=auth)),
    "ClearMessages":     ("",      "o", "d",     lambda box, auth: box.messages("DELETE", auth=auth)),
}
# fmt: on


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_account_sas_needs_the_resource_type_and_one_letter(queue: QueueBox, name: str) -> None:
    _, srt, letters, ask = OPERATIONS[name]
    if not srt:
        assert ask(queue, queue.client.account_sas("rwdlacup")).answer == NOT_AT_ALL
        return
    others = "".join(letter for letter in "rwdlacup" if letter not in letters)
    assert ask(queue, queue.client.account_sas(others)).answer == MISMATCH
    assert ask(queue, queue.client.account_sas("rwdlacup", srt="sco".replace(srt, ""))).answer == WRONG_TYPE
    for letter in letters:
        assert ask(queue, queue.client.account_sas(letter, srt=srt)).status < 300


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_service_sas_reaches_messages_and_metadata_only(queue: QueueBox, name: str) -> None:
    letter, *_, ask = OPERATIONS[name]
    if name in ("ListQueues", "GetProperties"):
        assert ask(queue, queue.sas("raup")).answer == (403, "AuthenticationFailed")
    elif name == "CreateQueue":
        assert queue.queue("PUT", auth=queue.sas("raup")).answer == NOT_AT_ALL
    elif not letter:
        assert ask(queue, queue.sas("raup")).answer == NOT_AT_ALL
    else:
        assert ask(queue, queue.sas("raup".replace(letter, ""))).answer == MISMATCH
        assert ask(queue, queue.sas(letter)).status < 300


def test_a_sas_is_good_for_its_queue_alone(queue: QueueBox) -> None:
    other = QueueBox(queue.client).create()
    assert other.get(auth=queue.sas("p")).answer == (403, "AuthenticationFailed")


def test_a_changed_sas_is_refused(queue: QueueBox) -> None:
    sas = queue.sas("r")
    assert queue.get(auth=sas.replace("sp=r", "sp=p")).answer == (403, "AuthenticationFailed")
    assert queue.peek(auth=sas + "&sr=b&rsct=text%2Fplain")["Content-Type"] == "application/xml"


def test_a_sas_ends_at_its_expiry(queue: QueueBox) -> None:
    sas = queue.sas("p", se=queue.client.moment(60))
    assert queue.get(auth=sas).status == 200
    queue.server.move_clock(61)
    assert queue.get(auth=sas).answer == (403, "AuthenticationFailed")


def test_a_request_line_that_was_let_in_is_not_let_in_by_other_credentials_or_later(queue: QueueBox) -> None:
    sas = queue.client.account_sas("ap", se=queue.client.moment(60))
    assert [queue.put(auth=sas).status, queue.put(auth=sas).status] == [201, 201]  # the route cache has the line now
    both = queue.put(auth=sas, headers={"Authorization": "Bearer x"})
    assert both.answer == (403, "AuthenticationFailed")
    assert queue.put(auth=sas.replace("sp=ap", "sp=a")).answer == (403, "AuthenticationFailed")
    assert queue.put(auth=sas).status == 201
    queue.server.move_clock(61)
    assert queue.put(auth=sas).answer == (403, "AuthenticationFailed")


def test_an_account_sas_for_another_service_is_refused(queue: QueueBox) -> None:
    assert queue.get(auth=queue.client.account_sas("p", ss="b")).answer == (403, "AuthorizationServiceMismatch")


@pytest.mark.parametrize(
    ("version", "layout", "root"),
    [
        ("2012-02-12", ("sp", "st", "se", "", "si", "sv"), "/"),
        ("2014-02-14", ("sp", "st", "se", "", "si", "sv"), "/"),
        ("2015-02-21", ("sp", "st", "se", "", "si", "sv"), "/queue/"),
        ("2015-04-05", ("sp", "st", "se", "", "si", "sip", "spr", "sv"), "/queue/"),
    ],
)
def test_older_tokens_sign_less(queue: QueueBox, version: str, layout: tuple[str, ...], root: str) -> None:
    fields = {"sp": "r", "se": queue.client.moment(60), "sv": version, "": f"{root}{queue.server.account}/{queue.name}"}
    text = "\n".join(fields.get(name, "") for name in layout)
    digest = hmac.new(base64.b64decode(queue.server.key), text.encode(), hashlib.sha256).digest()
    query = {"sp": "r", "se": fields["se"], "sv": version, "sig": base64.b64encode(digest).decode(), "peekonly": "true"}
    assert queue.messages("GET", query, auth=ANONYMOUS).status == 200


def test_a_stored_policy_gives_what_the_token_leaves_out_and_takes_it_back_at_once(queue: QueueBox) -> None:
    # contract G2
    def policy(permission: str) -> bytes:
        inner = f"<Start>{queue.client.moment(-60)}</Start><Expiry>{queue.client.moment(600)}</Expiry>"
        inner += f"<Permission>{permission}</Permission>"
        return (
            f"<SignedIdentifiers><SignedIdentifier><Id>worker</Id><AccessPolicy>{inner}</AccessPolicy>"
            "</SignedIdentifier></SignedIdentifiers>"
        ).encode()

    sas = queue.sas(si="worker")
    assert queue.get(auth=sas).answer == (403, "AuthenticationFailed")
    assert queue.queue("PUT", "acl", body=policy("pr")).status == 204
    assert queue.get(auth=sas).status == 200
    assert queue.put(auth=sas).answer == MISMATCH
    assert queue.queue("PUT", "acl", body=policy("a")).status == 204
    assert queue.get(auth=sas).answer == MISMATCH
    assert queue.put(auth=sas).status == 201
    assert queue.queue("PUT", "acl").status == 204
    assert queue.put(auth=sas).answer == (403, "AuthenticationFailed")


def test_policies_come_back_as_they_were_set(queue: QueueBox) -> None:
    assert queue.queue("GET", "acl").body.endswith(b"?><SignedIdentifiers />")
    sent = (
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2026-01-02</Start>"
        "<Expiry>2027-01-02T03:04:05Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier>"
        "<SignedIdentifier><Id>two</Id></SignedIdentifier></SignedIdentifiers>"
    )
    assert queue.queue("PUT", "acl", body=sent.encode()).status == 204
    shown = sent.replace("2026-01-02<", "2026-01-02T00:00:00.0000000Z<").replace("04:05Z", "04:05.0000000Z")
    assert queue.queue("GET", "acl").body.decode().endswith(shown)
    assert queue.queue("HEAD", "acl").status == 200


@pytest.mark.parametrize(
    "ids", [[f"id-{number}" for number in range(6)], ["same", "same"], ["x" * 65]], ids=["six", "twice", "too long"]
)
def test_policies_that_break_a_rule_are_refused(queue: QueueBox, ids: list[str]) -> None:
    rows = "".join(f"<SignedIdentifier><Id>{id}</Id></SignedIdentifier>" for id in ids)
    body = f"<SignedIdentifiers>{rows}</SignedIdentifiers>".encode()
    assert queue.queue("PUT", "acl", body=body).answer == (400, "InvalidXmlDocument")


def test_shared_key_lite_is_accepted(queue: QueueBox) -> None:
    path, date = f"/{queue.server.account}{queue.path}", formatdate(queue.server.now(), usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": VERSION}
    text = f"GET\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n/{queue.server.account}{path}?comp=metadata"
    digest = hmac.new(base64.b64decode(queue.server.key), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKeyLite {queue.server.account}:{base64.b64encode(digest).decode()}"
    assert queue.client.exchange("GET", f"{path}?comp=metadata", list(headers.items())).status == 200


def test_a_host_may_name_the_account(queue: QueueBox) -> None:
    host = f"{queue.server.account}.queue.localhost"
    assert queue.client.send("POST", f"{queue.path}/messages", host=host, body=document("by host")).status == 201
    assert queue.texts() == ["by host"]


def test_nobody_reaches_nothing(queue: QueueBox) -> None:
    for *_, ask in OPERATIONS.values():
        assert ask(queue, ANONYMOUS).answer == (401, "NoAuthenticationInformation")


def test_a_receipt_works_with_a_sas_and_survives_unescaped(queue: QueueBox) -> None:
    (message,) = found(queue.put())
    sas = queue_sas(queue.server.account, queue.server.key, queue.name, sp="p", se=queue.client.moment(60))
    path = f"/{queue.server.account}{queue.path}/messages/{message['MessageId'].upper()}?popreceipt={message['PopReceipt']}&{sas}"
    assert queue.client.exchange("DELETE", path, [("x-ms-version", VERSION)]).status == 204
