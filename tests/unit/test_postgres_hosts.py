"""In which order the hosts of a connection string are tried."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from verditer.partition.postgres.database import Database


def hosts(database: Database) -> list[tuple[str, str]]:
    parts = conninfo_to_dict(database.conninfo)
    names, ports = str(parts["host"]).split(","), str(parts.get("port", "5432")).split(",")
    return list(zip(names, ports * len(names) if len(ports) == 1 else ports, strict=True))


@pytest.mark.parametrize("ports", ["", ":1"])
def test_attempts_that_end_together_move_one_host_to_the_end(ports: str) -> None:
    database = Database(f"postgresql://user@one{ports},two{ports},three{ports}/store", lock_seconds=1)
    attempted = database.conninfo
    database.try_next_host(attempted)
    database.try_next_host(attempted)
    assert [host for host, _ in hosts(database)] == ["two", "three", "one"]
    database.try_next_host(database.conninfo)
    assert [host for host, _ in hosts(database)] == ["three", "one", "two"]


def test_a_single_host_stays() -> None:
    database = Database("postgresql://user@one:7/store", lock_seconds=1)
    before = database.conninfo
    database.try_next_host(before)
    assert database.conninfo == before


def test_ports_stay_with_their_hosts() -> None:
    database = Database("host=one,two,three port=1,2,3 user=user", lock_seconds=1)
    database.try_next_host(database.conninfo)
    assert hosts(database) == [("two", "2"), ("three", "3"), ("one", "1")]
