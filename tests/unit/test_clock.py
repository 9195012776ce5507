"""The hybrid clock: never backwards, never the same tick twice, never two nodes with one tick."""

from hypothesis import given
from hypothesis import strategies as st

from verditer.core.clock import NODES, HybridClock


class Wall:
    def __init__(self, ticks: int) -> None:
        self.ticks = ticks

    def __call__(self) -> int:
        return self.ticks


@given(st.lists(st.integers(-(10**9), 10**9), max_size=30), st.integers(0, NODES - 1))
def test_ticks_only_grow_whatever_the_wall_does(steps: list[int], node: int) -> None:
    # contract G4
    wall = Wall(10**12)
    clock = HybridClock(wall, node)
    issued = []
    shown = []
    for step in steps:
        wall.ticks = max(0, wall.ticks + step)
        shown.append(clock.now())
        issued.append(clock.tick())
        shown.append(clock.now())
    assert issued == sorted(set(issued))
    assert shown == sorted(shown)
    assert all(tick % NODES == node for tick in issued)


def test_two_nodes_never_issue_the_same_tick() -> None:
    wall = Wall(10**12)
    one, other = HybridClock(wall, 1), HybridClock(wall, 2)
    assert not {one.tick() for _ in range(1000)} & {other.tick() for _ in range(1000)}


@given(st.integers(0, 2 * 10**12))
def test_a_tick_is_later_than_what_it_follows(after: int) -> None:
    assert HybridClock(Wall(10**12)).tick(after) > after


def test_a_clock_goes_on_behind_the_ticks_of_its_predecessor() -> None:
    floor = 10**12 + 17
    assert HybridClock(Wall(0), node=3, floor=floor).tick() > floor - NODES


def test_moving_time_forward_moves_now_and_ticks() -> None:
    wall = Wall(10**12)
    clock = HybridClock(wall)
    wall.ticks += 10**9
    assert clock.now() == 10**12 + 10**9
    assert clock.tick() >= 10**12 + 10**9
