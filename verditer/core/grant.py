"""What a caller may do: authentication gives a `Grant`, an operation requires an `Allow`, and `admit` compares them.

Azure's error codes differ by what is missing (service, resource type, permission), so the comparison reports which it is. The
operation tables use the constructors below `Allow`: one expression for one line of Azure's permission page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from verditer.core.errors import Code, StorageError, TokenIssuer
from verditer.core.records.container import AccessPolicy
from verditer.core.records.record import Span, key_of, span_of, successor

AUTHORIZATION_URI = "https://login.microsoftonline.com/common/oauth2/authorize"
NOT_PERMITTED = "not permitted"  # the public access of a container whose account allows none
_EVERY_LETTER = "racwdxyltfmeopiu"


class Scheme(Enum):
    KEY = "key"  # Shared Key or Lite: everything
    ACCOUNT_SAS = "account SAS"
    SERVICE_SAS = "service SAS"  # signed by an account key or by a user's delegation key
    BEARER = "bearer token"  # everything: roles are not modelled
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """Who a bearer token was issued to: object id and tenant id."""

    oid: str
    tid: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What authentication found. `letters` are the SAS permissions; `overrides` are blob properties that a reader gets instead of
    the stored ones (rscc … rsct).

    Many requests may share a grant: it is a value, and `overrides` is read only.
    """

    scheme: Scheme
    letters: str = ""
    resource_types: str = ""  # account SAS: srt
    reach: str = ""  # service SAS: "c" container, "d" directory, "b" one blob; anonymous: the public access of the container
    version: str = ""  # SAS: sv; anonymous: the service version asked for. Old versions refuse differently
    overrides: Mapping[str, str] = field(default_factory=dict)
    user: User | None = None  # bearer
    authorization_uri: str = AUTHORIZATION_URI  # anonymous: where a refusal sends the caller for a token
    entities: "EntityReach | None" = None  # table SAS: the one table, and the keys in it


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityReach:
    """The entities that a table SAS covers: in one table, those from the first key pair to the last, both included."""

    table: str  # in lower case
    start_partition: str | None = None  # spk
    start_row: str | None = None  # srk: requires spk
    end_partition: str | None = None  # epk
    end_row: str | None = None  # erk: requires epk

    def span(self, table_id: int) -> Span:
        """Stored keys sort as pairs of PartitionKey and RowKey do, so the covered entities are one span of keys."""
        low, high = span_of(table_id)
        if self.start_partition is not None:
            low = key_of(table_id, self.start_partition, *_given(self.start_row))
        if self.end_partition is not None:
            high = successor(key_of(table_id, self.end_partition, *_given(self.end_row)))
        return Span(low, high)

    def check_table(self, table: str) -> None:
        if table.lower() != self.table:
            raise StorageError(Code.AuthorizationFailure)

    def check(self, table: str, partition_key: str, row_key: str) -> None:
        """A write outside is refused; a query is limited by `span` without an error."""
        self.check_table(table)
        low, high = self.span(0)
        if not low <= key_of(0, partition_key, row_key) < high:
            raise StorageError(Code.AuthorizationFailure)


def _given(key: str | None) -> tuple[str, ...]:
    return () if key is None else (key,)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerAccess:
    """The public access level and the stored access policies of a container, queue or table."""

    public_access: str | None = None
    policies: tuple[AccessPolicy, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Allow:
    """Who may call an operation. An empty string means that this scheme does not permit it."""

    resource: str = "o"  # account SAS: one of these resource types …
    account: str = ""  # … and one of these letters
    container: str = ""  # letters a service SAS for the container needs one of
    blob: str = ""  # letters a service SAS for the blob needs one of
    public: tuple[str, ...] = ()  # public access levels that allow anonymous callers
    every: str = ""  # letters that are all required, of every kind of SAS
    overwrite: str = ""  # letters that permit overwriting; a SAS with only other letters may only create
    create_since: str = ""  # from this version on, `c` alone is enough to create
    bearer_only: bool = False  # not even by the account key
    key_only: bool = False  # not even by a bearer token


def sas(letters: str, *, public: tuple[str, ...] = (), overwrite: str = "", create_since: str = "") -> Allow:
    """An operation on a blob: one of the letters, in an account SAS or a service SAS."""
    return Allow(account=letters, container=letters, blob=letters, public=public, overwrite=overwrite, create_since=create_since)


def container_sas(letters: str, *, resource: str = "c", public: tuple[str, ...] = ()) -> Allow:
    """An operation on a container that a service SAS for the container permits too: listing, finding."""
    return Allow(resource=resource, account=letters, container=letters, public=public)


def account_only(resource: str, letters: str, *, public: tuple[str, ...] = ()) -> Allow:
    """An operation that no service SAS permits."""
    return Allow(resource=resource, account=letters, public=public)


def entity_sas(letters: str) -> Allow:
    """An operation on entities: all of the letters, in an account SAS or a table SAS."""
    return Allow(account=letters, container=letters, blob=letters, every=letters)


KEY_ONLY = Allow(key_only=True)
KEY_OR_BEARER = Allow()
BEARER_ONLY = Allow(bearer_only=True)
ANY = Allow(resource="sco", account=_EVERY_LETTER, container=_EVERY_LETTER)  # a batch: each of its requests is checked on its own
ACCOUNT_INFORMATION = Allow(resource="sco", account=_EVERY_LETTER, container="r", blob="r")


def admit(allow: Allow, grant: Grant) -> bool:
    """Raise StorageError, or return whether the caller may only create. Shared Key and bearer tokens are admitted to every
    operation that is not reserved for the other."""
    if grant.scheme is Scheme.BEARER:
        if allow.key_only:
            raise StorageError(Code.ResourceNotFound)  # seen on Azure: Get and Set Table ACL
        return False
    if allow.bearer_only and grant.scheme is not Scheme.ANONYMOUS:
        raise StorageError(Code.AuthenticationFailed, reason="Only authentication scheme Bearer is supported")
    if grant.scheme is Scheme.KEY:
        return False
    if grant.scheme is Scheme.ANONYMOUS:
        if grant.reach not in allow.public:
            raise _anonymous_refusal(grant)
        return False
    refusal = _refusal(
        _wanted_letters(allow, grant),
        allow.every,
        grant.letters,
        allow.resource if grant.scheme is Scheme.ACCOUNT_SAS else None,
        grant.resource_types,
    )
    if refusal is not None:
        # Before 2015-04-05 the answer to an insufficient SAS was that the resource does not exist.
        raise StorageError(refusal if grant.version >= "2015-04-05" else Code.ResourceNotFound)
    return bool(allow.overwrite) and not _share_a_letter(allow.overwrite, grant.letters)


def check_letter(letter: str, grant: Grant) -> None:
    """Raise StorageError when a SAS lacks the letter that a part of the request needs. `admit` has admitted the caller."""
    if grant.scheme in (Scheme.ACCOUNT_SAS, Scheme.SERVICE_SAS) and letter not in grant.letters:
        raise StorageError(Code.AuthorizationPermissionMismatch)


def _anonymous_refusal(grant: Grant) -> StorageError:
    if grant.version < "2019-12-12":
        return StorageError(Code.PublicAccessNotPermitted if grant.reach == NOT_PERMITTED else Code.ResourceNotFound)
    return StorageError(Code.NoAuthenticationInformation, details=TokenIssuer(grant.authorization_uri))


@lru_cache(maxsize=256)  # few different texts, compared with every request
def _refusal(wanted: str, every: str, letters: str, resource: str | None, resource_types: str) -> Code | None:
    """What a SAS with these letters lacks. `resource` is None for a service SAS, which has no resource types."""
    if not wanted:
        return Code.AuthorizationFailure
    if resource is not None and not _share_a_letter(resource, resource_types):
        return Code.AuthorizationResourceTypeMismatch
    held = _share_a_letter(wanted, letters) and all(letter in letters for letter in every)
    return None if held else Code.AuthorizationPermissionMismatch


def _wanted_letters(allow: Allow, grant: Grant) -> str:
    if grant.scheme is Scheme.ACCOUNT_SAS:
        letters = allow.account
    else:
        letters = allow.container if grant.reach == "c" else allow.blob
    return letters + "c" if allow.create_since and grant.version >= allow.create_since else letters


@lru_cache(maxsize=256)
def _share_a_letter(wanted: str, held: str) -> bool:
    return any(letter in held for letter in wanted)
