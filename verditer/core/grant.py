"""What a caller may do: `Grant` is what authentication found out, `Allow` what an operation asks for; `admit` compares them.

Azure's failure codes differ by what is missing (service, resource type, permission), so the comparison says which. The
constructors below `Allow` are the vocabulary of the operation tables: one line of Azure's permission page, one expression.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from verditer.core.errors import Code, StorageError
from verditer.core.records.container import AccessPolicy

# What clients read from it: that a token would help, and for which resource.
CHALLENGE = (
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com"
)
_EVERY_LETTER = "racwdxyltfmeopiu"


class Scheme(Enum):
    KEY = "key"  # Shared Key or Lite: everything
    ACCOUNT_SAS = "account SAS"
    SERVICE_SAS = "service SAS"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """`letters` are the SAS permissions. `overrides` are response headers the SAS replaces (rscc … rsct).

    A grant may be shared by many requests: it is a value, and `overrides` is read only.
    """

    scheme: Scheme
    letters: str = ""
    resource_types: str = ""  # account SAS: srt
    reach: str = ""  # service SAS: "c" container, "d" directory, "b" one blob; anonymous: the container's public access
    version: str = ""  # SAS: sv; anonymous: the service version asked for. Old versions refuse differently
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerAccess:
    """What a container says about callers without the account key."""

    public_access: str | None = None
    policies: tuple[AccessPolicy, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Allow:
    """Who may call an operation. An empty string means: not by this scheme."""

    resource: str = "o"  # account SAS: one of these resource types …
    account: str = ""  # … and one of these letters
    container: str = ""  # letters a service SAS for the container needs one of
    blob: str = ""  # letters a service SAS for the blob needs one of
    public: tuple[str, ...] = ()  # public access levels that allow anonymous callers
    overwrite: str = ""  # letters that allow replacing what exists; holding only others means create only
    create_since: str = ""  # from this version on, `c` alone is enough to create


def sas(letters: str, *, public: tuple[str, ...] = (), overwrite: str = "", create_since: str = "") -> Allow:
    """An operation on a blob: any of the letters, whichever SAS carries them."""
    return Allow(account=letters, container=letters, blob=letters, public=public, overwrite=overwrite, create_since=create_since)


def container_sas(letters: str, *, resource: str = "c", public: tuple[str, ...] = ()) -> Allow:
    """An operation on a container that its own service SAS reaches too: listing, finding."""
    return Allow(resource=resource, account=letters, container=letters, public=public)


def account_only(resource: str, letters: str, *, public: tuple[str, ...] = ()) -> Allow:
    """An operation no service SAS reaches."""
    return Allow(resource=resource, account=letters, public=public)


KEY_ONLY = Allow()
ANY = Allow(resource="sco", account=_EVERY_LETTER, container=_EVERY_LETTER)  # a batch: each part is checked on its own
ACCOUNT_INFORMATION = Allow(resource="sco", account=_EVERY_LETTER, container="r", blob="r")


def admit(allow: Allow, grant: Grant) -> bool:
    """Refuse, or say whether the caller may only create. Shared Key passes everything."""
    if grant.scheme is Scheme.KEY:
        return False
    if grant.scheme is Scheme.ANONYMOUS:
        if grant.reach not in allow.public:
            raise _anonymous_refusal(grant)
        return False
    refusal = _refusal(allow, grant)
    if refusal is not None:
        # Before 2015-04-05 a SAS that did not suffice was told the resource is not there.
        raise StorageError(refusal if grant.version >= "2015-04-05" else Code.ResourceNotFound)
    return bool(allow.overwrite) and not _holds_one(grant, allow.overwrite)


def _anonymous_refusal(grant: Grant) -> StorageError:
    if grant.version < "2019-12-12":
        return StorageError(Code.ResourceNotFound)
    return StorageError(Code.NoAuthenticationInformation, headers={"WWW-Authenticate": CHALLENGE})


def _refusal(allow: Allow, grant: Grant) -> Code | None:
    wanted = _wanted_letters(allow, grant)
    if not wanted:
        return Code.AuthorizationFailure
    if grant.scheme is Scheme.ACCOUNT_SAS and not any(kind in grant.resource_types for kind in allow.resource):
        return Code.AuthorizationResourceTypeMismatch
    return None if _holds_one(grant, wanted) else Code.AuthorizationPermissionMismatch


def _wanted_letters(allow: Allow, grant: Grant) -> str:
    if grant.scheme is Scheme.ACCOUNT_SAS:
        letters = allow.account
    else:
        letters = allow.container if grant.reach == "c" else allow.blob
    return letters + "c" if allow.create_since and grant.version >= allow.create_since else letters


def _holds_one(grant: Grant, letters: str) -> bool:
    return any(letter in grant.letters for letter in letters)
