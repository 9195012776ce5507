"""The same tests for a longer time: `pytest -m soak`, with VERDITER_SOAK_SECONDS for each (default 60)."""

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.simulation import test_durability, test_linear, test_model, test_races, test_reads
from tests.simulation.servers import Fleet

pytestmark = pytest.mark.soak
SECONDS = float(os.environ.get("VERDITER_SOAK_SECONDS", "60"))


def rounds(container: str, seed: int) -> Iterator[tuple[str, random.Random]]:
    """A new container and a new seed for each round; the seed of a failed round replays it."""
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end:
        print(f"VERDITER_SEED={seed + number}")
        yield f"{container}-{number}", random.Random(seed + number)
        number += 1


async def test_killed_again_and_again(own_fleet: Fleet, container: str, seed: int) -> None:
    # contract G6
    for name, chance in rounds(container, seed):
        await test_durability.test_every_acknowledged_write_survives_a_kill(own_fleet, name, chance)


async def test_orders_are_found_for_long_histories(own_fleet: Fleet, container: str, seed: int) -> None:
    # contract G2, G5, G6
    for name, chance in rounds(container, seed):
        await test_linear.test_random_calls_by_many_clients_have_an_order(own_fleet, name, chance)
        await test_linear.test_the_order_survives_a_kill(own_fleet, f"{name}-killed", chance)


async def test_races_have_one_winner_every_time(fleet: Fleet, container: str, seed: int) -> None:
    # contract G3, G5
    for name, chance in rounds(container, seed):
        await test_races.test_of_many_writers_with_one_etag_exactly_one_wins(fleet, f"{name}-a", chance)
        await test_races.test_nobody_writes_with_a_lease_that_was_stolen(fleet, f"{name}-b", chance)
        await test_races.test_of_two_committers_the_loser_finds_its_blocks_gone(fleet, f"{name}-c", chance)
        await test_races.test_a_container_is_deleted_with_everything_or_not_yet(fleet, f"{name}-d")
        await test_reads.test_a_read_is_of_one_version_while_the_blob_is_overwritten(fleet, f"{name}-e", chance)


async def test_the_model_agrees_for_long(own_fleet: Fleet, container: str, seed: int) -> None:
    for name, chance in rounds(container, seed):
        await test_model.test_random_operations_agree_with_the_model(own_fleet, name, chance)
