"""Which worker takes the next connection."""

from verditer.serving.accept import ConnectionCounts


def test_a_worker_with_more_connections_than_another_leaves_the_next_to_it() -> None:
    counts = ConnectionCounts(2)
    one, other = counts.of_worker(0), counts.of_worker(1)
    assert not one.has_more_than_another
    one.add(1)
    assert one.has_more_than_another
    assert not other.has_more_than_another
    other.add(2)
    assert not one.has_more_than_another
    assert other.has_more_than_another


def test_a_worker_that_takes_the_place_of_a_dead_one_begins_with_none() -> None:
    counts = ConnectionCounts(2)
    counts.of_worker(0).add(5)
    assert not counts.of_worker(0).has_more_than_another
