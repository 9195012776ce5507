"""Add the source: the second resource of a copy or a rename, and whether the caller may use it."""

from collections.abc import Coroutine
from typing import Any

import msgspec

from verditer.core.grant import admit
from verditer.rest.copy_source import Endpoints, copy_source
from verditer.rest.files import rename_source
from verditer.rest.stages import Decoded
from verditer.rest.steps.authenticate import Authenticator
from verditer.services.context import Context


class Sources:
    def __init__(self, ctx: Context, authenticator: Authenticator, endpoints: Endpoints) -> None:
        self._ctx = ctx
        self._authenticator = authenticator
        self._endpoints = endpoints

    def add(self, decoded: Decoded) -> Decoded | Coroutine[Any, Any, Decoded]:
        return self._with_source(decoded) if decoded.op.takes_source else decoded

    async def _with_source(self, decoded: Decoded) -> Decoded:
        rule, renames = decoded.op.source_guard, decoded.op.renames
        if rule is not None:
            source = await copy_source(decoded, rule, self._endpoints, self._authenticator.grant_for_source)
            return msgspec.structs.replace(decoded, source=source)
        return await self._add_rename_source(decoded, is_directory=renames == "directory")

    async def _add_rename_source(self, decoded: Decoded, *, is_directory: bool) -> Decoded:
        """A source that brings a signature of its own is authorized by it."""
        request, accounts = decoded.request, self._ctx.accounts
        product_style = self._endpoints.product_style
        address, source = rename_source(
            request.headers, is_directory=is_directory, accounts=accounts, product_style=product_style
        )
        if "sig" in address.query and address.account in self._ctx.accounts:
            signed = msgspec.structs.replace(request, headers={"x-ms-version": decoded.version})
            admit(decoded.op.allow, await self._authenticator.grant_of(signed, address))
        return msgspec.structs.replace(decoded, source=source)
