"""A connection to PostgreSQL that is driven by the event loop: several statements travel together and are answered together.

It uses libpq's pipeline mode through `psycopg.pq`. psycopg opens the connection, so hosts, TLS and authentication work as libpq
documents them. A round has a deadline of its own: a server that is stopped, or cut off, answers nothing and reports no error, so
the connection is closed and the caller gets an exception.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.database import Database, Lineage

_SUCCESS = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_BINARY = tuple([1] * count for count in range(8))  # parameter formats, by the number of parameters


class ConnectionLost(Exception):
    """The connection ended before a round was answered."""


class PipelineCall(NamedTuple):
    """A statement and its parameters in PostgreSQL's binary format."""

    statement: bytes
    values: Sequence[bytes] = ()


_names: dict[bytes, bytes] = {}  # of prepared statements; there are a dozen for each record class


def _name_of(statement: bytes) -> bytes:
    name = _names.get(statement)
    if name is None:
        name = _names[statement] = b"v%d" % len(_names)
    return name


class PipelineConnection:
    """One round at a time. `on_close` is called once, when the connection ends for whatever reason."""

    def __init__(self, connection: "psycopg.AsyncConnection[tuple[object, ...]]", lineage: Lineage | None) -> None:
        self._connection = connection
        self.lineage = lineage
        self._pg: PGconn = connection.pgconn
        self._loop = asyncio.get_running_loop()
        self.on_close: Callable[[], None] = _nothing
        self._prepared: set[bytes] = set()
        self._awaited: list[bytes | None] = []  # results that are to come: the name of a statement being prepared, or None
        self._results: list[PGresult] = []
        self._answer: asyncio.Future[list[PGresult]] | None = None
        self._error: Exception | None = None
        self._is_writing = False
        self.closed = False
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self._socket = self._pg.socket
        self._loop.add_reader(self._socket, self._receive)

    async def run(self, calls: Sequence[PipelineCall], deadline_seconds: float) -> list[PGresult]:
        """The result of each statement. Raises the error of the first one that failed; the others after it were not executed."""
        assert self._answer is None, "one round at a time"
        if self.closed:
            raise ConnectionLost
        answer: asyncio.Future[list[PGresult]] = self._loop.create_future()
        self._answer = answer
        timer = self._loop.call_later(deadline_seconds, self._expire, deadline_seconds)
        try:
            try:
                self._send(calls)
            except psycopg.OperationalError as error:
                self.close(ConnectionLost(str(error)))
            return await answer
        except asyncio.CancelledError:
            self.close(ConnectionLost("cancelled"))
            raise
        finally:
            timer.cancel()
            self._answer = None

    def check(self) -> None:
        """Raises ConnectionLost if the server has closed the connection, so that nothing is sent whose outcome were unknown."""
        for _ in range(2):  # the server's last message, and the end of the stream behind it
            if not self.closed:
                self._receive()
        if self.closed:
            raise ConnectionLost("the server closed the connection")

    def _send(self, calls: Sequence[PipelineCall]) -> None:
        pg, awaited, prepared = self._pg, self._awaited, self._prepared
        self._results = []
        self._error = None
        preparing: set[bytes] = set()
        for statement, values in calls:
            name = _name_of(statement)
            if name not in prepared and name not in preparing:
                pg.send_prepare(name, statement)
                awaited.append(name)
                preparing.add(name)
            pg.send_query_prepared(name, values or None, _BINARY[len(values)] if values else None, result_format=1)
            awaited.append(None)
        pg.pipeline_sync()
        self._flush()

    def _flush(self) -> None:
        """Send what libpq holds, and be called again when the socket takes more."""
        try:
            is_rest = self._pg.flush()
        except psycopg.OperationalError as error:
            self.close(ConnectionLost(str(error)))
            return
        if is_rest and not self._is_writing:
            self._loop.add_writer(self._socket, self._flush)
            self._is_writing = True
        elif not is_rest and self._is_writing:
            self._loop.remove_writer(self._socket)
            self._is_writing = False

    def _receive(self) -> None:
        pg = self._pg
        try:
            pg.consume_input()
        except psycopg.OperationalError as error:
            self.close(ConnectionLost(str(error)))
            return
        if self._answer is None:
            if pg.status != ConnStatus.OK:
                self.close(ConnectionLost("the server closed the connection"))
            return
        while not pg.is_busy():
            result = pg.get_result()
            if result is None:
                continue  # the end of one statement's results
            if result.status == ExecStatus.PIPELINE_SYNC:
                self._finish()
                return
            if pg.status != ConnStatus.OK:
                self.close(ConnectionLost(result.get_error_message()))
                return
            self._take(result)

    def _take(self, result: PGresult) -> None:
        if not self._awaited:
            return  # an error that belongs to no statement, such as the end of the session
        prepared = self._awaited.pop(0)
        if result.status not in _SUCCESS:
            if self._error is None:
                self._error = error_of(result)
        elif prepared is not None:
            self._prepared.add(prepared)
        else:
            self._results.append(result)

    def _finish(self) -> None:
        answer = self._answer
        self._awaited.clear()
        if answer is None or answer.done():
            return
        if self._error is not None:
            answer.set_exception(self._error)
        else:
            answer.set_result(self._results)

    def _expire(self, deadline_seconds: float) -> None:
        self.close(DeadlinePassed(f"the database did not answer within {deadline_seconds:g} s"))

    def close(self, reason: Exception | None = None) -> None:
        """End the connection at once. A round that is under way fails with `reason`."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._socket)
        if self._is_writing:
            self._loop.remove_writer(self._socket)
        with contextlib.suppress(psycopg.Error):
            self._pg.finish()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(reason or ConnectionLost("closed"))
        self.on_close()


class DeadlinePassed(ConnectionLost):
    """The server did not answer in time. It may be stopped: every other connection to it is as useless."""


async def open_pipeline(database: Database, deadline_seconds: float) -> PipelineConnection:
    conninfo = database.conninfo
    try:
        async with asyncio.timeout(deadline_seconds):
            connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True, prepare_threshold=None)
            try:
                lineage = await database.set_up_on_loop(connection)
            except BaseException:
                await connection.close()
                raise
    except TimeoutError:
        database.try_next_host(conninfo)
        raise EngineUnavailable(f"the database accepted no connection within {deadline_seconds:g} s") from None
    except psycopg.OperationalError as error:
        raise EngineUnavailable(str(error)) from error
    return PipelineConnection(connection, lineage)


def _nothing() -> None: ...


def error_of(result: PGresult) -> psycopg.Error:
    code = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    message = result.get_error_message()
    if result.status == ExecStatus.PIPELINE_ABORTED:
        return errors.OperationalError(message)
    try:
        return errors.lookup(code)(message)
    except KeyError:
        return psycopg.DatabaseError(f"{code}: {message}")
