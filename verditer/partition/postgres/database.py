"""The database of a store: how connections to its primary are opened.

A primary that was suspended or cut off does not know at once that a standby was promoted in its place: it accepts connections,
and what it reads is old. A promotion begins a new timeline. So a process refuses a server whose timeline is older than one that
it has used, tries the other hosts first from then on, and uses no connection that it opened before the promotion.
"""

import threading
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.connection import PostgresConnection

CONNECT_SECONDS = 3  # for each host of the connection string
_DEFAULTS = {
    "application_name": "verditer",
    "target_session_attrs": "read-write",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# Every wait of a statement has a limit on the server, too. Every statement finds its rows by an index: a plan made while a table
# was empty must not read the whole table later, and a plan need not depend on the values.
_OPTIONS = (
    "-c lock_timeout={lock_ms} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000"
    " -c enable_seqscan=off -c plan_cache_mode=force_generic_plan -c jit=off"
)

# An acknowledged write is durable (contract G6), whatever the server's default; a stricter default stays.
_SYNCHRONOUS = (
    b"SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)

# On the event loop the rounds of a transaction follow each other at once. A process that was stopped between two holds its locks.
_SHORT_TRANSACTIONS = b"SET idle_in_transaction_session_timeout = '15s'"

# A timeline is the first eight digits, hexadecimal, of the name of a log file.
_LINEAGE = b"SELECT system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system()"
_NOT_SUPPORTED = (psycopg.ProgrammingError, psycopg.NotSupportedError)


class Lineage(NamedTuple):
    """The history that a server continues. In a database that was made anew, timelines begin at one again."""

    system: int
    timeline: str


class Database:
    """`conninfo` is the operator's connection string or URL. Its options come before those of this engine."""

    def __init__(self, conninfo: str, lock_seconds: float) -> None:
        given = conninfo_to_dict(conninfo)
        options = f"{given.pop('options', None) or ''} {_OPTIONS.format(lock_ms=int(lock_seconds * 1000))}".strip()
        self._parameters: dict[str, Any] = {**_DEFAULTS, **given, "options": options}
        self._lock = threading.Lock()
        self._newest: Lineage | None = None  # None, too, if the server does not tell

    @property
    def conninfo(self) -> str:
        return make_conninfo("", **self._parameters)

    def connect(self) -> PostgresConnection:
        """For a thread, which calls `set_up` next."""
        try:
            connection = psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=0)
        except psycopg.OperationalError as error:
            raise EngineUnavailable(str(error)) from error
        connection.prepared_max = None  # there are few statements: a dozen for each record class
        return connection

    def try_next_host(self, conninfo: str) -> None:
        """Hosts that answer nothing can use up the time for a connection: after an attempt with this connection string, the next
        ones begin behind its first host. Of several attempts that end together, one is enough."""
        if conninfo != self.conninfo:
            return
        for name in ("host", "hostaddr", "port"):
            first, comma, others = str(self._parameters.get(name, "")).partition(",")
            if comma:
                self._parameters[name] = f"{others},{first}"

    def set_up(self, connection: PostgresConnection) -> Lineage | None:
        connection.execute(_SYNCHRONOUS, prepare=False)
        try:
            row = connection.execute(_LINEAGE, prepare=False).fetchone()
        except _NOT_SUPPORTED:
            row = None
        return self._admit(connection.info, row)

    async def set_up_on_loop(self, connection: "psycopg.AsyncConnection[tuple[Any, ...]]") -> Lineage | None:
        await connection.execute(_SYNCHRONOUS, prepare=False)
        await connection.execute(_SHORT_TRANSACTIONS, prepare=False)
        try:
            row = await (await connection.execute(_LINEAGE, prepare=False)).fetchone()
        except _NOT_SUPPORTED:
            row = None
        return self._admit(connection.info, row)

    def is_newest(self, lineage: Lineage | None) -> bool:
        return lineage == self._newest

    def _admit(self, info: psycopg.ConnectionInfo, row: tuple[Any, ...] | None) -> Lineage | None:
        """Raises EngineUnavailable for a former primary."""
        lineage = Lineage(*row) if row is not None else None
        with self._lock:
            newest = self._newest
            if lineage and newest and lineage.system == newest.system and lineage.timeline < newest.timeline:
                self._try_last(info)
                raise EngineUnavailable(f"{info.host} port {info.port} was the primary before timeline {newest.timeline}")
            self._newest = lineage
        return lineage

    def _try_last(self, info: psycopg.ConnectionInfo) -> None:
        """Move a host to the end of the connection string."""
        here = {"host": info.host, "hostaddr": info.hostaddr, "port": str(info.port)}
        names = [name for name in here if "," in str(self._parameters.get(name, ""))]
        hosts = zip(*[str(self._parameters[name]).split(",") for name in names], strict=True)
        ordered = sorted(hosts, key=lambda values: [here[name] for name in names] == list(values))
        self._parameters.update({name: ",".join(values) for name, values in zip(names, zip(*ordered, strict=True), strict=True)})
