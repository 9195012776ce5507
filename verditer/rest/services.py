"""The services that a server offers, one row each: operations, how a path names a resource, and how requests are authenticated.

Everything that differs between services is a column of `rest/service.py`.
"""

from collections.abc import Mapping

from verditer.core.errors import Code, StorageError
from verditer.core.names import (
    AccountName,
    BlobName,
    ContainerName,
    MessageName,
    QueueName,
    check_container_name,
    check_queue_name,
)
from verditer.rest.address import Address
from verditer.rest.auth.sas_layouts import (
    BLOB_DELEGATION,
    BLOB_SAS,
    FILE_DELEGATION,
    FILE_SAS,
    QUEUE_DELEGATION,
    QUEUE_SAS,
    TABLE_SAS,
)
from verditer.rest.auth.shared_key import standard_strings, table_strings
from verditer.rest.auth.target import container_of, first_segment, table_of_token, target_of
from verditer.rest.codecs.table.table_paths import locate_table, tunnelled_verb
from verditer.rest.errors import table_error, xml_error
from verditer.rest.files import locate_file
from verditer.rest.operation import Level
from verditer.rest.operations import blob, file, queue, table
from verditer.rest.service import AccessPolicies, Service
from verditer.rest.stages import ResourceName
from verditer.services import access


def locate_blob(address: Address, headers: Mapping[str, str]) -> tuple[Level, ResourceName]:
    container, name = target_of(address)
    if not container:
        return Level.SERVICE, AccountName(address.account, "blob")
    check_container_name(container)
    if not name:
        return Level.CONTAINER, ContainerName(address.account, container)
    if "\0" in name:
        raise StorageError(Code.InvalidUri)
    return Level.BLOB, BlobName(address.account, container, name)


def locate_queue(address: Address, headers: Mapping[str, str]) -> tuple[Level, ResourceName]:
    """`/queue`, `/queue/messages`, `/queue/messages/id`."""
    account, segments = address.account, address.segments
    if not segments:
        return Level.SERVICE, AccountName(account, "queue")
    check_queue_name(segments[0])
    if len(segments) == 1:
        return Level.QUEUE, QueueName(account, segments[0])
    messages, _, message = segments[1].partition("/")
    if messages.lower() != "messages":
        raise StorageError(Code.InvalidUri)
    if not message:
        return Level.MESSAGES, QueueName(account, segments[0])
    return Level.MESSAGE, MessageName(account, segments[0], message)


BLOB = Service(
    name="blob",
    letter="b",
    operations=blob.OPERATIONS,
    locate=locate_blob,
    strings_to_sign=standard_strings,
    service_sas=BLOB_SAS,
    delegation_layouts=BLOB_DELEGATION,
    policies=AccessPolicies(holder=container_of, read=access.container_access),
    anonymous=True,
    error=xml_error,
)
QUEUE = Service(
    name="queue",
    letter="q",
    operations=queue.OPERATIONS,
    locate=locate_queue,
    strings_to_sign=standard_strings,
    service_sas=QUEUE_SAS,
    delegation_layouts=QUEUE_DELEGATION,
    policies=AccessPolicies(holder=first_segment, read=access.queue_access),
    error=xml_error,
)
TABLE = Service(
    name="table",
    letter="t",
    operations=table.OPERATIONS,
    locate=locate_table,
    strings_to_sign=table_strings,
    service_sas=TABLE_SAS,
    policies=AccessPolicies(holder=table_of_token, read=access.table_access),
    error=table_error,
    verb=tunnelled_verb,
    wrong_verb=Code.MethodNotAllowed,
)
FILE = Service(
    name="file",
    letter="f",
    operations=file.OPERATIONS,
    locate=locate_file,
    strings_to_sign=standard_strings,
    service_sas=FILE_SAS,
    delegation_layouts=FILE_DELEGATION,
    policies=AccessPolicies(holder=first_segment, read=access.share_access),
    bearer_intent="backup",
    error=xml_error,
)
SERVICES = (BLOB, QUEUE, TABLE, FILE)
