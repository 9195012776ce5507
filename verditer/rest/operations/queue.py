"""The Queue service: one row for each operation of Azure."""

from functools import partial

from verditer.core.grant import BEARER_ONLY, KEY_OR_BEARER, account_only, container_sas, sas
from verditer.core.guard import NONE
from verditer.core.limits import MAX_MESSAGE_XML, MAX_XML
from verditer.rest.codecs.delegation import parse_key_info, render_delegation_key
from verditer.rest.codecs.policies import parse_policies
from verditer.rest.codecs.properties import parse_properties, render_properties, render_stats
from verditer.rest.codecs.queue.queues import (
    parse_changed_message,
    parse_message,
    render_acl,
    render_got,
    render_peeked,
    render_put,
    render_queues,
)
from verditer.rest.headers import answers as h
from verditer.rest.headers import fields as f
from verditer.rest.headers import groups as g
from verditer.rest.operation import EMPTY, Answer, Level, Op, answer, document, route
from verditer.services import delegation, properties
from verditer.services.queue import messages, queues

S, Q, MS, M = Level.SERVICE, Level.QUEUE, Level.MESSAGES, Level.MESSAGE
SERVICE = {"restype": "service"}
POLICIES = document(parse_policies, MAX_XML)
KEY_INFO = document(parse_key_info, MAX_XML)
PROPERTIES = document(parse_properties, MAX_XML)
MESSAGE = document(parse_message, MAX_MESSAGE_XML)
CHANGED_MESSAGE = document(parse_changed_message, MAX_MESSAGE_XML)
NO_CACHE = (("Cache-Control", "no-cache"),)


def _created_or_present(is_new: bool) -> int:
    return 201 if is_new else 204


OK, NO_CONTENT = partial(answer, 200), partial(answer, 204)
CREATED_OR_PRESENT = Answer(201, status_of=_created_or_present)


# The tables are aligned by hand.
# fmt: off
OPERATIONS = (
    #  name                       route                                           takes                            body             guard allow                     call                               answer
    Op("ListQueues",              route("GET", S, comp="list"),                   f.QUEUE_LISTING,                 EMPTY,           NONE, account_only("s", "l"),   queues.list_queues,                OK(body=render_queues)),
    Op("GetServiceProperties",    route("GET", S, comp="properties", **SERVICE),  f.NOTHING,                       EMPTY,           NONE, account_only("s", "r"),   properties.get_service_properties, OK(body=render_properties)),
    Op("SetServiceProperties",    route("PUT", S, comp="properties", **SERVICE),  f.NOTHING,                       PROPERTIES,      NONE, account_only("s", "w"),   properties.set_service_properties, Answer(202)),
    Op("GetServiceStats",         route("GET", S, comp="stats", **SERVICE),       f.NOTHING,                       EMPTY,           NONE, account_only("s", "r"),   properties.get_service_stats,      OK(body=render_stats)),
    Op("GetUserDelegationKey",    route("POST", S, comp="userdelegationkey", **SERVICE), f.VERSION,                KEY_INFO,        NONE, BEARER_ONLY,              delegation.get_user_delegation_key, OK(body=render_delegation_key)),

    Op("CreateQueue",             route("PUT", Q),                                f.METADATA,                      EMPTY,           NONE, account_only("c", "cw"),  queues.create_queue,               CREATED_OR_PRESENT),
    Op("DeleteQueue",             route("DELETE", Q),                             f.NOTHING,                       EMPTY,           NONE, account_only("c", "d"),   queues.delete_queue,               NO_CONTENT()),
    Op("GetQueueMetadata",        route("GET|HEAD", Q, comp="metadata"),          f.NOTHING,                       EMPTY,           NONE, container_sas("r"),       queues.get_queue,                  OK(*h.MESSAGES_COUNT, groups=(g.queue_metadata,))),
    Op("SetQueueMetadata",        route("PUT", Q, comp="metadata"),               f.METADATA,                      EMPTY,           NONE, account_only("c", "w"),   queues.set_queue_metadata,         NO_CONTENT()),
    Op("GetQueueAcl",             route("GET|HEAD", Q, comp="acl"),               f.NOTHING,                       EMPTY,           NONE, KEY_OR_BEARER,            queues.get_queue_acl,              OK(body=render_acl)),
    Op("SetQueueAcl",             route("PUT", Q, comp="acl"),                    f.NOTHING,                       POLICIES,        NONE, KEY_OR_BEARER,            queues.set_queue_acl,              NO_CONTENT()),

    Op("PutMessage",              route("POST", MS),                              f.NEW_MESSAGE,                   MESSAGE,         NONE, sas("a"),                 messages.put_message,              Answer(201, body=render_put)),
    Op("PeekMessages",            route("GET", MS, peekonly="true"),              f.MESSAGE_COUNT,                 EMPTY,           NONE, sas("r"),                 messages.peek_messages,            OK(body=render_peeked, constants=NO_CACHE)),
    Op("GetMessages",             route("GET", MS),                               f.RETRIEVAL,                     EMPTY,           NONE, sas("p"),                 messages.get_messages,             OK(body=render_got, constants=NO_CACHE), changes=True),
    Op("ClearMessages",           route("DELETE", MS),                            f.NOTHING,                       EMPTY,           NONE, account_only("o", "d"),   queues.clear_messages,             NO_CONTENT()),
    Op("UpdateMessage",           route("PUT", M),                                f.POP_RECEIPT | f.NEW_VISIBILITY, CHANGED_MESSAGE, NONE, sas("u"),                messages.update_message,           NO_CONTENT(*h.UPDATED_MESSAGE)),
    Op("DeleteMessage",           route("DELETE", M),                             f.POP_RECEIPT,                   EMPTY,           NONE, sas("p"),                 messages.delete_message,           NO_CONTENT()),
)
# fmt: on
