"""Secrets of the store, which all its processes share. They are made when they are first needed."""

from collections.abc import Callable

from verditer.core.records.secret import Secret
from verditer.partition.engine import Transaction
from verditer.services.context import Context

_SCOPE = ("secrets",)


async def stored_secret(ctx: Context, name: str, make: Callable[[], bytes]) -> bytes:
    """Read from the store each time: replacing a secret invalidates at once what was derived from it."""
    stored = await ctx.engine.read(_SCOPE, lambda tx: tx.get(Secret, name))
    if stored is not None:
        return stored.value
    made = Secret(name=name, value=make())

    def commit(tx: Transaction) -> bytes:
        """When two processes create the secret at the same time, both use the one that was committed first."""
        stored = tx.get(Secret, name)
        if stored is None:
            tx.put(made)
        return (stored or made).value

    return await ctx.engine.write([_SCOPE], commit)
