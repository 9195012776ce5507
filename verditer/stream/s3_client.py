"""How an S3-compatible store is called: credentials, errors and deadlines. `s3_location.py` says where it is.

Credentials come from the default chain of the AWS SDKs (environment, profile, web identity, container, instance). Every call has
a deadline of this server, because a store that is stopped or cut off does not answer at all. No message contains a credential.
"""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from awscrt.auth import AwsCredentials, AwsCredentialsProvider, AwsCredentialsProviderBase
from obstore.exceptions import BaseError
from obstore.store import S3Store

from verditer.stream.extents import ExtentsUnavailable
from verditer.stream.s3_location import S3Location

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Credential

T = TypeVar("T")

DEADLINE_SECONDS = 10.0
CONNECT_SECONDS = 3
_MAX_REASON = 300  # characters: some stores answer with a page of HTML


class Credentials:
    """One provider for all calls. It caches and renews what expires."""

    def __init__(self, provider: AwsCredentialsProviderBase | None = None) -> None:
        self._provider = provider or AwsCredentialsProvider.new_default_chain()

    async def get(self) -> AwsCredentials:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._provider.get_credentials()), DEADLINE_SECONDS)
        except Exception as error:
            raise ExtentsUnavailable(f"no AWS credentials were found ({type(error).__name__})") from None

    async def __call__(self) -> "S3Credential":
        found = await self.get()
        expiration: datetime | None = found.expiration
        return {
            "access_key_id": found.access_key_id,
            "secret_access_key": found.secret_access_key,
            "token": found.session_token,
            "expires_at": expiration,
        }


def connect(location: S3Location, credentials: Credentials, deadline_seconds: float) -> S3Store:
    deadline = timedelta(seconds=deadline_seconds)
    config: S3Config = {"region": location.region, "virtual_hosted_style_request": location.virtual_host}
    if location.endpoint is not None:
        config["endpoint"] = location.base_url if location.virtual_host else location.endpoint
    return S3Store(
        location.bucket,
        config=config,
        client_options={
            "allow_http": (location.endpoint or "").startswith("http://"),
            "connect_timeout": timedelta(seconds=min(CONNECT_SECONDS, deadline_seconds)),
            "read_timeout": deadline,
            "timeout": deadline,  # of one request: a part or a range of a few MiB
        },
        retry_config={"max_retries": 3, "retry_timeout": deadline, "backoff": {"init_backoff": timedelta(milliseconds=50)}},
        credential_provider=credentials,
    )


async def within(deadline_seconds: float, call: Awaitable[T]) -> T:
    """The result of a call to the store. What goes wrong, other than a missing object, becomes ExtentsUnavailable."""
    try:
        async with asyncio.timeout(deadline_seconds):  # `wait_for` may swallow a cancellation that coincides with the answer
            return await call
    except TimeoutError:
        raise ExtentsUnavailable(f"the S3 store did not answer within {deadline_seconds:g} s") from None
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        raise unavailable(error) from None


def unavailable(error: Exception) -> ExtentsUnavailable:
    text = " ".join(str(error).split("\n\nDebug source")[0].split())
    return ExtentsUnavailable(f"the S3 store failed: {text[:_MAX_REASON]}")
