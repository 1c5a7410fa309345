"""Flow control between a fragment and its receiver."""

from __future__ import annotations

import threading

import pyarrow as pa

from remuda.exec import TupleBatch
from remuda.exec.batch import ArrowBatch
from remuda.expr import Column
from remuda.runtime import BoundedChannel
from remuda.runtime.channel import CAPACITY
from remuda.types import BIGINT

COLUMNS = (Column(1, "n", BIGINT),)


def batch(number: int) -> TupleBatch:
    return TupleBatch(COLUMNS, [(number,)])


def test_a_full_channel_refuses_and_signals_when_there_is_room() -> None:
    received, room = [], []
    channel = BoundedChannel(lambda: received.append(1))
    channel.signal_sender = lambda: room.append(1)
    assert channel.poll() is None
    assert [channel.offer(batch(number)) for number in range(CAPACITY + 2)] == [True] * CAPACITY + [False] * 2
    assert len(received) == CAPACITY, "the receiver is told of every batch, and of no refusal"
    assert not room
    first = channel.poll()
    assert first is not None
    assert list(first.tuples()) == [(0,)]
    assert len(room) == 1
    assert channel.offer(batch(99))


def wide(kilobytes: int) -> ArrowBatch:
    return ArrowBatch(COLUMNS, pa.record_batch({"0": pa.array(range(kilobytes * 128), pa.int64())}))


def test_bytes_bound_a_channel_as_well() -> None:
    channel = BoundedChannel(most_bytes=10 << 10)
    room: list[int] = []
    channel.signal_sender = lambda: room.append(1)
    assert [channel.offer(wide(4)) for _ in range(3)] == [True, True, False]
    assert channel.bytes_held == 8 << 10
    assert channel.offer(wide(2)), "a smaller one has room"
    assert not channel.offer(batch(1))
    assert channel.poll() is not None
    assert room == [1]
    assert channel.bytes_held == 6 << 10
    assert channel.offer(wide(4))
    channel.abandon()
    assert channel.bytes_held == 0


def test_a_batch_larger_than_the_bound_waits_alone() -> None:
    channel = BoundedChannel(most_bytes=10 << 10)
    assert channel.offer(wide(1))
    assert not channel.offer(wide(100))
    assert channel.poll() is not None
    assert channel.offer(wide(100)), "an empty channel takes any batch, or the sender would wait forever"
    assert not channel.offer(wide(1))
    assert channel.poll() is not None
    assert channel.offer(wide(1))


def test_the_end_comes_after_the_last_batch() -> None:
    told = []
    channel = BoundedChannel(lambda: told.append(1))
    channel.offer(batch(1))
    assert not channel.is_finished
    channel.finish()
    assert len(told) == 2
    assert not channel.is_finished, "a batch is still to be taken"
    channel.poll()
    assert channel.is_finished
    assert channel.poll() is None


def test_batches_arrive_once_and_in_order_between_two_threads() -> None:
    arrived, room = threading.Event(), threading.Event()
    channel = BoundedChannel(arrived.set, capacity=2)
    channel.signal_sender = room.set
    count = 20_000

    def send() -> None:
        for number in range(count):
            while True:
                room.clear()
                if channel.offer(batch(number)):
                    break
                room.wait(5)
        channel.finish()

    sender = threading.Thread(target=send)
    sender.start()
    received = []
    while not channel.is_finished:
        arrived.clear()
        found = channel.poll()
        if found is not None:
            received.append(found.row(0)[0])
        elif not channel.is_finished:
            arrived.wait(5)
    sender.join()
    assert received == list(range(count))


def test_an_abandoned_channel_takes_everything_and_holds_nothing() -> None:
    room: list[int] = []
    channel = BoundedChannel()
    channel.signal_sender = lambda: room.append(1)
    assert [channel.offer(batch(number)) for number in range(CAPACITY + 1)] == [True] * CAPACITY + [False]
    channel.abandon()
    assert room == [1], "the sender that found no room is told"
    assert all(channel.offer(batch(number)) for number in range(CAPACITY + 1))
    assert channel.poll() is None
    channel.finish()
    assert channel.is_finished
