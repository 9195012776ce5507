"""The self-test of sessions and locks, over two connections. A database that speaks PostgreSQL's protocol may accept advisory
locks and ignore them, which would corrupt a store without a sign, and a pooler in front of it may drop settings on which
durability and deadlines rest: a store whose database fails the test is not opened.
"""

import secrets

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.connection import PostgresConnection
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.locks import Locking


def check_sessions(one: PostgresConnection, other: PostgresConnection) -> None:
    """Raises EngineUnavailable unless each connection is one session of the server, with the settings that were asked for. A
    pooler in transaction mode gives each transaction a session that happens to be free."""
    named = [(connection, secrets.token_hex(8)) for connection in (one, other)]
    for connection, name in named:
        connection.execute("SELECT set_config('verditer.session', %s, false)", (name,), prepare=False)
    with other.transaction(), one.transaction():
        for connection, name in named:
            if connection.execute(_SESSION, prepare=False).fetchone() != (name, "force_generic_plan"):
                raise EngineUnavailable(
                    "something between this node and the database does not keep sessions and their settings, such as"
                    " pgbouncer in transaction mode: connect to PostgreSQL itself"
                )


_SESSION = b"SELECT current_setting('verditer.session', true), current_setting('plan_cache_mode')"


def check_locks(one: PostgresConnection, other: PostgresConnection, locking: Locking) -> None:
    """Raises EngineUnavailable. The key is random, so that processes that start together do not meet."""
    test = _LockTest(one, other, locking)
    test.check_modes()
    test.check_sight()


class _LockTest:
    def __init__(self, one: PostgresConnection, other: PostgresConnection, locking: Locking) -> None:
        self._one = one
        self._other = other
        self._locking = locking
        self._key = secrets.randbits(62)

    def check_modes(self) -> None:
        one, other = self._one, self._other
        with one.transaction():
            self._expect(self._takes(one, exclusive=True), "a free lock was refused")
            with other.transaction():
                self._expect(not self._takes(other, exclusive=True), "an exclusive lock was granted twice")
                self._expect(not self._takes(other, exclusive=False), "a shared lock was granted beside an exclusive one")
        with one.transaction(), other.transaction():
            self._expect(self._takes(one, exclusive=False), "a lock did not end with its transaction")
            self._expect(self._takes(other, exclusive=False), "a shared lock was not shared")
        with one.transaction():
            self._expect(self._takes(one, exclusive=False), "a lock did not end with its transaction")
            with other.transaction():
                self._expect(not self._takes(other, exclusive=True), "an exclusive lock was granted beside a shared one")

    def check_sight(self) -> None:
        """`other` takes a lock that `one` held while it changed a row. It sees the change, though its transaction began
        before."""
        one, other, name = self._one, self._other, f"lock test {self._key:x}"
        with other.transaction():
            other.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            other.execute("SELECT value FROM store WHERE name = %s", (name,))
            with one.transaction():
                self._expect(self._takes(one, exclusive=True), "a free lock was refused")
                one.execute("INSERT INTO store (name, value) VALUES (%s, 0)", (name,))
            self._expect(self._takes(other, exclusive=True), "a lock did not end with its transaction")
            found = other.execute("DELETE FROM store WHERE name = %s", (name,)).rowcount
            self._expect(found == 1, "a statement after the lock did not see what was committed before it")

    def _takes(self, connection: PostgresConnection, *, exclusive: bool) -> bool:
        return self._locking.is_taken(connection, (self._key, exclusive))

    def _expect(self, holds: bool, complaint: str) -> None:
        if holds:
            return
        advice = ""
        if isinstance(self._locking, AdvisoryLocks):
            advice = "; if its row locks are real, an empty database can be used with --postgres-locks rows"
        raise EngineUnavailable(f"this database cannot keep a store with {self._locking.name} locks: {complaint}{advice}")
