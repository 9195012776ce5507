"""The services a server offers: name, table, and how a path becomes a level and a target."""

from verditer.core.errors import Code, StorageError
from verditer.core.names import AccountName, BlobName, ContainerName, check_container_name
from verditer.rest.address import Address
from verditer.rest.auth.target import target_of
from verditer.rest.operation import Level
from verditer.rest.operations import blob
from verditer.rest.pipeline import Service, Target


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


BLOB = Service(name="blob", operations=blob.OPERATIONS, locate=locate_blob)
SERVICES = (BLOB,)
