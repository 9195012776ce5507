"""The row type of a service: everything in which one service differs from another for the front end.

`rest/services.py` holds the rows. The pipeline and `rest/auth` read them and never compare names of services.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from verditer.core.errors import Code, StorageError
from verditer.core.grant import ContainerAccess, EntityReach
from verditer.rest.address import Address
from verditer.rest.http.message import Request, Response
from verditer.rest.operation import Level, Op
from verditer.rest.stages import LATEST_VERSION, IncomingRequest, ResourceName
from verditer.services.context import Context

Layouts = tuple[tuple[str, str], ...]
"""(first version, names of the signed fields in their order); the last entry whose version is not newer than `sv` counts."""

StringsToSign = Callable[[Request, Address, str, bool], Iterator[str]]
"""(request, address, canonical path of the resource, Shared Key Lite) → every string that a client may have signed."""


class SignedResource(NamedTuple):
    """What of a request's target a service SAS signs. A tuple, because it is part of a cache key."""

    names: tuple[str, ...]  # account/container[/blob], account/queue, …; several where clients spell one resource differently
    fields: tuple[tuple[str, str], ...] = ()  # further signed values that are not fields of every token

    def field(self, name: str) -> str:
        return dict(self.fields)[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceKind:
    """A value of `sr`. `reach` is what it means for permissions: "c" a container, "d" a directory, "b" one object."""

    reach: str
    since: str = ""  # the first version that has it


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ServiceSas:
    """How a service SAS is signed and what it reaches."""

    layouts: Layouts
    resource: Callable[[Address, str], SignedResource]  # (address, sr)
    fields_of_path: Callable[[str], dict[str, str]]  # the fields by which a new token says what it is for
    kinds: Mapping[str, ResourceKind] = field(default_factory=dict)  # by sr; empty where a token reaches whatever it names
    overrides: bool = False  # rscc, rscd, rsce, rscl and rsct replace headers of the answer
    entities: Callable[[SignedResource], EntityReach] | None = None  # the entities that the token is limited to


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessPolicies:
    """Where stored access policies, and the level of public access, are kept."""

    holder: Callable[[Address], str]  # the container, queue or table whose policies a token may name
    read: Callable[[Context, str, str], Awaitable[ContainerAccess | None]]  # (context, account, holder)


@dataclass(frozen=True, kw_only=True, eq=False)
class Service:
    name: str  # of the port, in the configuration, in the host names of Azure and in what a SAS signs
    letter: str  # in `ss` of an account SAS and in `sks` of a user delegation SAS
    operations: Sequence[Op]
    locate: Callable[[Address, Mapping[str, str]], tuple[Level, ResourceName]]  # address and headers of the request
    strings_to_sign: StringsToSign
    service_sas: ServiceSas | None  # None: the service accepts none
    delegation_layouts: Layouts = ()  # of user delegation SAS; empty: the service accepts none
    policies: AccessPolicies
    anonymous: bool = False  # a container may be open to callers without credentials
    error: Callable[[StorageError, IncomingRequest, int], Response]
    verb: Callable[[Request], str] = attrgetter("method")  # the verb that a request means; Table tunnels verbs through POST
    wrong_verb: Code = Code.UnsupportedHttpVerb
    bearer_intent: str | None = None  # what x-ms-file-request-intent of a request with a bearer token has to say
    default_version: str = LATEST_VERSION  # where neither the request nor the account names one
