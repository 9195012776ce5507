"""Credentials for Microsoft's clients, with tokens of the development issuer."""

from datetime import UTC, datetime
from typing import Any

from azure.core.credentials import AccessToken

from tests.rest.running import Running
from verditer.rest.auth.issuer import DevelopmentIssuer


class Credential:
    """A substitute for azure-identity that records the requests."""

    def __init__(self, server: Running, *lifetimes: float, **who: str) -> None:
        self._server = server
        self._issuer = DevelopmentIssuer(server.app.config.location / "oauth")
        self._lifetimes = list(lifetimes)
        self._who = who
        self.asked: list[tuple[tuple[str, ...], str | None]] = []

    def get_token(self, *scopes: str, tenant_id: str | None = None, **more: Any) -> AccessToken:
        self.asked.append((scopes, tenant_id))
        seconds = self._lifetimes.pop(0) if self._lifetimes else 3600
        made = self._issuer.token(self._server.app.ctx.now(), seconds=seconds, **self._who)
        return AccessToken(made, int(datetime.now(UTC).timestamp()) + 3600)  # assumed validity: an hour


class AsyncCredential(Credential):
    async def get_token(self, *scopes: str, **more: Any) -> AccessToken:  # type: ignore[override]
        return super().get_token(*scopes, **more)

    async def close(self) -> None: ...

    async def __aenter__(self) -> "AsyncCredential":
        return self

    async def __aexit__(self, *problem: object) -> None: ...
