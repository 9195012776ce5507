"""The shared stores that a run starts for itself: PostgreSQL and an S3 server, as the tests use them (`tests/contract`)."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import sides
from benchmarks.servers import CannotMeasure, Side
from tests.contract import s3
from tests.contract.postgres import running_server

ONE_WORKER = ("--workers", "1")


def embedded() -> Side:
    return sides.verditer(label="embedded, one worker", options=ONE_WORKER)


def require_s3() -> None:
    if reason := s3.missing():
        raise CannotMeasure(reason)


@contextmanager
def on_postgres(*, with_s3: bool = False) -> Iterator[Side]:
    """A node on a database of its own. PostgreSQL syncs its log, as the embedded store does."""
    with running_server(fsync=True) as server, _bucket(with_s3) as (flags, environment):
        options = (*ONE_WORKER, "--database", server.make_database(), *flags)
        side = sides.verditer(label="PostgreSQL and S3" if with_s3 else "PostgreSQL", options=options)
        yield Side(label=side.label, command=side.command, environment={**side.environment, **environment})


@contextmanager
def _bucket(wanted: bool) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    if not wanted:
        yield (), {}
        return
    with s3.running_s3_server() as server:
        location = server.location()
        yield ("--extents", f"s3://{location.bucket}/{location.prefix}"), server.environment
