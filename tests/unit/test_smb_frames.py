"""Frames arrive in pieces of any size; and how much of a client's work may run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.smb.frames import BadFrame, FrameBuffer, split_chain
from verditer.smb.limits import MAX_PENDING, MAX_PENDING_BYTES, MAX_RUNNING_BYTES
from verditer.smb.load import ChainLoad, Load
from verditer.smb.status import SmbError

LENGTHS = st.one_of(st.integers(33, 200), st.integers(16_000, 16_500), st.integers(40_000, 70_000))


@given(st.lists(LENGTHS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_frames_come_out_as_they_went_in(lengths: list[int], chance: object) -> None:
    frames = [bytes([number % 251]) * length for number, length in enumerate(lengths)]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    buffer, found, at = FrameBuffer(), [], 0
    while at < len(stream):
        room = buffer.room()
        assert len(room)
        count = min(len(room), len(stream) - at, chance.choice([1, 3, 100, 5000, 1 << 20]))  # type: ignore[attr-defined]
        room[:count] = stream[at : at + count]
        buffer.received(count)
        at += count
        while (frame := buffer.next_frame(1 << 20)) is not None:
            found.append(bytes(frame))
    assert found == frames
    assert buffer.is_empty


@pytest.mark.parametrize("start", [b"\0\0\0\0", b"\0\0\0\x20", b"\x81\0\0\x44", b"GET ", b"\0\x10\0\1"])
def test_what_is_no_frame_is_refused(start: bytes) -> None:
    buffer = FrameBuffer()
    buffer.room()[:4] = start
    buffer.received(4)
    with pytest.raises(BadFrame):
        buffer.next_frame(1 << 20)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_chain_or_none(data: bytes) -> None:
    assert split_chain(memoryview(b"\xfeSMB\x40\0" + data)) is None or len(data) >= 60


def test_large_answers_count_while_they_are_made() -> None:
    load = Load()
    chains = [ChainLoad(100, 1 << 20) for _ in range(4)]
    for chain in chains:
        assert not load.is_too_much
        load.begin(chain)
    assert load.is_too_much
    load.end(chains[0])
    assert not load.is_too_much
    assert MAX_RUNNING_BYTES == 4 << 20


def test_a_request_that_waits_counts_no_longer_as_running() -> None:
    load = Load()
    chains = [ChainLoad(100, 1 << 20) for _ in range(100)]
    for chain in chains:
        load.begin(chain)
        load.begin_pending(chain)
    assert not load.is_too_much
    for chain in chains:
        load.end(chain)
    load.begin(ChainLoad(0, MAX_RUNNING_BYTES))
    assert load.is_too_much  # by what every request counts at least


def test_requests_that_wait_are_limited_in_number_and_size() -> None:
    load = Load()
    for _ in range(MAX_PENDING):
        load.begin_pending(ChainLoad(100, 0))
    with pytest.raises(SmbError):
        load.begin_pending(ChainLoad(100, 0))
    load = Load()
    load.begin_pending(ChainLoad(MAX_PENDING_BYTES, 0))
    with pytest.raises(SmbError):
        load.begin_pending(ChainLoad(1, 0))
