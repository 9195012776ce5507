"""The services a server offers: name, table, and how a path becomes a level and a target."""

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
from verditer.rest.auth.target import target_of
from verditer.rest.errors import table_error
from verditer.rest.operation import Level
from verditer.rest.operations import blob, file, queue, table
from verditer.rest.pipeline import Service, Target
from verditer.rest.tables import locate_table, tunnelled_verb


def locate_blob(address: Address) -> tuple[Level, Target]:
    container, name = target_of(address)
    if not container:
        return Level.SERVICE, AccountName(address.account, "blob")
    check_container_name(container)
    if not name:
        return Level.CONTAINER, ContainerName(address.account, container)
    if "\0" in name:
        raise StorageError(Code.InvalidUri)
    return Level.BLOB, BlobName(address.account, container, name)


def locate_queue(address: Address) -> tuple[Level, Target]:
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


def locate_file(address: Address) -> tuple[Level, Target]:
    """A share's root is a directory too. No operation is built, so none needs more than the service as its target."""
    service = AccountName(address.account, "file")
    if not address.segments:
        return Level.SERVICE, service
    about_root = address.query.get("restype") == "directory" or "handles" in address.query.get("comp", "")
    return (Level.PATH if len(address.segments) == 2 or about_root else Level.SHARE), service


BLOB = Service(name="blob", operations=blob.OPERATIONS, locate=locate_blob)
FILE = Service(name="file", operations=file.OPERATIONS, locate=locate_file)
QUEUE = Service(name="queue", operations=queue.OPERATIONS, locate=locate_queue)
TABLE = Service(
    name="table",
    operations=table.OPERATIONS,
    locate=locate_table,
    error=table_error,
    verb=tunnelled_verb,
    wrong_verb=Code.MethodNotAllowed,
)
SERVICES = (BLOB, QUEUE, TABLE, FILE)
