"""The engine contract stays small enough to remember, and both engines offer it."""

import inspect
from typing import Protocol

import pytest

from verditer.partition.engine import Engine, Transaction
from verditer.partition.postgres.batches.loop_transaction import LoopTransaction
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.postgres.transaction import PostgresTransaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.transaction import SqliteTransaction

MAX_METHODS = 15  # of Engine and Transaction together
PROVIDED_BY_INSTANCES = {"tick"}  # the embedded transaction hands on the clock's own method


def methods(contract: type) -> set[str]:
    return {name for name in vars(contract) if not name.startswith("_") and name not in vars(Protocol)}


def test_the_contract_has_few_methods() -> None:
    assert len(methods(Engine)) + len(methods(Transaction)) <= MAX_METHODS


@pytest.mark.parametrize(
    ("contract", "implementation"),
    [
        (Engine, SqliteEngine),
        (Engine, PostgresEngine),
        (Transaction, SqliteTransaction),
        (Transaction, PostgresTransaction),
        (Transaction, LoopTransaction),
    ],
)
def test_an_engine_offers_the_contract_with_the_same_parameters(contract: type, implementation: type) -> None:
    for name in methods(contract) - PROVIDED_BY_INSTANCES:
        wanted, found = getattr(contract, name), getattr(implementation, name)
        if inspect.isfunction(wanted):
            assert list(inspect.signature(found).parameters) == list(inspect.signature(wanted).parameters), name
