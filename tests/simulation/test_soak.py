"""The same tests for a longer time: `pytest -m soak`, with VERDITER_SOAK_SECONDS for each (default 60)."""

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.simulation import (
    test_durability,
    test_file_durability,
    test_file_races,
    test_linear,
    test_model,
    test_races,
    test_reads,
)
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


def test_a_share_agrees_with_its_model_killed_again_and_again(own_fleet: Fleet, container: str, seed: int) -> None:
    # contract G6, F1
    for _, chance in rounds(container, seed):
        test_file_durability.test_a_share_agrees_with_its_model_after_kills(own_fleet, chance)


async def test_directory_trees_stay_whole_every_time(fleet: Fleet, container: str, seed: int) -> None:
    # contract G3, G5, F1, F4
    for name, _ in rounds(container, seed):
        await test_file_races.test_of_many_who_want_one_name_exactly_one_gets_it(fleet, f"{name}-a")
        await test_file_races.test_what_is_created_below_a_moving_directory_is_found_once(fleet, f"{name}-b")
        await test_file_races.test_crossing_renames_end_and_every_directory_stays_in_reach(fleet, f"{name}-c")
        await test_file_races.test_a_directory_is_deleted_or_gets_a_file(fleet, f"{name}-d")
        await test_file_races.test_listings_and_snapshots_show_a_directory_before_or_after_its_rename(fleet, f"{name}-e")
        await test_file_races.test_writers_of_disjoint_ranges_all_succeed(fleet, f"{name}-f")
