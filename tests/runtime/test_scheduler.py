"""The scheduler: many fragments on few threads, waits and signals in every order, errors, the end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.exec import Exec, ExecContext, IterationResult
from remuda.runtime import QueryState, Scheduler
from remuda.runtime.scheduler import TIME_SLICE, FragmentTask

WAIT, FETCHED, DONE = IterationResult.WAIT, IterationResult.FETCHED, IterationResult.FETCHED_DONE
PATIENCE = 60.0


class Steps(Exec):
    """An operator whose every step is a call of a function."""

    def __init__(self, step: Callable[[], IterationResult]) -> None:
        self._step = step

    def setup(self, context: ExecContext) -> None:
        pass

    def advance(self) -> IterationResult:
        return self._step()


class Told(QueryState):
    """Tells the test of the error of a fragment."""

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        super().__init__()
        self.fail = fail


def task(step: Callable[[], IterationResult], fail: Callable[[BaseException], None] | None = None) -> FragmentTask:
    def unexpected(error: BaseException) -> None:
        raise AssertionError("the fragment failed") from error

    return FragmentTask(Steps(step), Told(fail or unexpected))


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    created = Scheduler(parallelism=2)
    yield created
    created.close()


def test_a_thousand_fragments_on_two_threads(scheduler: Scheduler) -> None:
    """Each takes five steps with a WAIT in between and is signalled by another thread; no two steps of one overlap."""
    count = 1_000
    tasks: list[FragmentTask] = []
    steps = [0] * count
    inside = [False] * count
    threads: set[str] = set()
    waiting: list[int] = []
    all_done = threading.Semaphore(0)

    def step_of(number: int) -> Callable[[], IterationResult]:
        def step() -> IterationResult:
            assert not inside[number], "a fragment is advanced by one thread at a time"
            inside[number] = True
            threads.add(threading.current_thread().name)
            steps[number] += 1
            result = (FETCHED, WAIT, FETCHED, WAIT, DONE)[steps[number] - 1]
            inside[number] = False
            if result is WAIT:
                waiting.append(number)
            if result is DONE:
                all_done.release()
            return result

        return step

    tasks.extend(task(step_of(number)) for number in range(count))
    for each in tasks:
        scheduler.submit(each)
    end = time.monotonic() + PATIENCE
    signalled = 0
    while signalled < 2 * count and time.monotonic() < end:
        while waiting:
            tasks[waiting.pop()].signal()
            signalled += 1
        time.sleep(0.0005)
    for _ in range(count):
        assert all_done.acquire(timeout=PATIENCE)
    assert steps == [5] * count
    assert len(threads) <= 2


@pytest.mark.parametrize("seed", range(10))
def test_no_signal_is_lost_whenever_it_comes(scheduler: Scheduler, seed: int) -> None:
    """A producer signals at random moments, often between the fragment's look and its parking."""
    chance = random.Random(seed)
    produced, consumed, total = 0, 0, 300
    done = threading.Event()

    def step() -> IterationResult:
        nonlocal consumed
        if consumed == produced:
            return WAIT
        consumed += 1
        if consumed == total:
            done.set()
            return DONE
        return FETCHED

    consumer = task(step)
    scheduler.submit(consumer)
    for _ in range(total):
        produced += 1
        consumer.signal()
        if chance.random() < 0.1:
            time.sleep(0)
    assert done.wait(PATIENCE), f"a signal was lost at {consumed} of {total}"


def test_a_long_fragment_lets_others_run(scheduler: Scheduler) -> None:
    """Two fragments that never wait hold both threads; a third gets its turn after a time slice."""
    stop = threading.Event()
    short_done = threading.Event()

    def endless() -> IterationResult:
        return DONE if stop.is_set() else FETCHED

    def short() -> IterationResult:
        short_done.set()
        return DONE

    for _ in range(2):
        scheduler.submit(task(endless, lambda _: None))
    time.sleep(4 * TIME_SLICE)
    scheduler.submit(task(short))
    got_its_turn = short_done.wait(PATIENCE)
    stop.set()
    assert got_its_turn


@pytest.mark.parametrize("kind", [ValueError, SqlError, KeyboardInterrupt])
def test_an_error_ends_the_fragment_and_not_the_thread(scheduler: Scheduler, kind: type[BaseException]) -> None:
    errors: list[BaseException] = []
    failed = threading.Event()

    def step() -> IterationResult:
        raise kind(ErrorCode.GENERIC, "broken") if kind is SqlError else kind("broken")

    def fail(error: BaseException) -> None:
        errors.append(error)
        failed.set()

    for _ in range(5):
        failed.clear()
        scheduler.submit(task(step, fail))
        assert failed.wait(PATIENCE)
    assert [type(error) for error in errors] == [kind] * 5
    done = threading.Event()

    def last() -> IterationResult:
        done.set()
        return DONE

    scheduler.submit(task(last))
    assert done.wait(PATIENCE)


def test_an_error_at_setup_is_the_querys(scheduler: Scheduler) -> None:
    errors: list[BaseException] = []
    failed = threading.Event()

    def setup() -> None:
        raise ValueError("not my partitions")

    def fail(error: BaseException) -> None:
        errors.append(error)
        failed.set()

    scheduler.submit(FragmentTask(Steps(lambda: DONE), Told(fail), setup))
    assert failed.wait(PATIENCE)
    assert str(errors[0]) == "not my partitions"


def remuda_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("remuda-")}


def test_close_ends_the_threads() -> None:
    before = remuda_threads()
    created = Scheduler(parallelism=3)
    assert remuda_threads() <= before, "threads begin with the first fragment"
    created.submit(task(lambda: DONE))
    assert len(remuda_threads() - before) == 3
    created.close()
    assert remuda_threads() <= before
    created.close()


def test_close_fails_the_fragments_that_are_left() -> None:
    """Running, waiting and queued ones: whoever reads their queries must not wait for ever."""
    created = Scheduler(parallelism=1)
    errors: list[str] = []

    def failing(name: str) -> Callable[[BaseException], None]:
        return lambda _: errors.append(name)

    parked = threading.Event()

    def wait() -> IterationResult:
        parked.set()
        return WAIT

    waiting = task(wait, failing("waiting"))
    created.submit(waiting)
    assert parked.wait(PATIENCE)
    created.submit(task(lambda: FETCHED, failing("running")))
    created.submit(task(lambda: FETCHED, failing("queued")))
    created.close()
    assert sorted(errors) == ["queued", "running"]
    waiting.signal()
    assert sorted(errors) == ["queued", "running", "waiting"]


def test_a_closed_scheduler_takes_no_fragment() -> None:
    created = Scheduler(parallelism=1)
    created.close()
    with pytest.raises(SqlError, match="closed"):
        created.submit(task(lambda: DONE))


def test_the_threads_of_a_forgotten_scheduler_end() -> None:
    before = remuda_threads()
    created = Scheduler(parallelism=2)
    created.submit(task(lambda: DONE))
    mine = remuda_threads() - before
    assert len(mine) == 2
    del created
    for thread in mine:
        thread.join(PATIENCE)
        assert not thread.is_alive()
