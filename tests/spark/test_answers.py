"""What tasks send: in order, through Spark or in a file, and read only when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from remuda.exec import ArrowBatch
from remuda.expr import Column
from remuda.spark.query import answers
from remuda.spark.query.answers import batches_of, send, task_of
from remuda.spark.query.stage_job import AnswerChannel
from remuda.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = (Column(0, "id", BIGINT), Column(1, "name", VARCHAR))


def batches(count: int, rows: int = 100) -> Iterator[ArrowBatch]:
    """Every other one with a dictionary, which batches need not share."""
    for number in range(count):
        names = pa.array([f"{number}-{row % 7}" for row in range(rows)])
        ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
        arrays = [ids, names.dictionary_encode() if number % 2 else names]
        yield ArrowBatch(COLUMNS, pa.RecordBatch.from_arrays(arrays, names=["0", "1"]))


def rows_of(sent: list[bytes]) -> list[tuple[object, ...]]:
    found = [batch.arrow() for each in sent for batch in batches_of(each, COLUMNS)]
    return [tuple(row) for batch in found for row in zip(*batch.to_pydict().values(), strict=True)]


@pytest.fixture
def little_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "INLINE_BYTES", 4_000)


@pytest.mark.usefixtures("little_inline")
def test_few_rows_go_through_spark(tmp_path: Path) -> None:
    sent = list(send(3, batches(1), str(tmp_path)))
    assert [task_of(each) for each in sent] == [3]
    assert rows_of(sent) == rows_of(list(send(3, batches(1), None)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("little_inline")
def test_many_rows_go_into_one_file_in_their_order(tmp_path: Path) -> None:
    sent = list(send(5, batches(20), str(tmp_path)))
    inline = list(send(5, batches(20), None))
    assert len(inline) == 20
    assert len(sent) < 5
    assert {task_of(each) for each in sent} == {5}
    assert [row[0] for row in rows_of(sent)] == list(range(2_000))
    assert rows_of(sent) == rows_of(inline)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.usefixtures("little_inline")
def test_file_may_be_removed_while_its_batches_are_in_use(tmp_path: Path) -> None:
    reader = batches_of(list(send(0, batches(20), str(tmp_path)))[-1], COLUMNS)
    first = next(reader)
    (file,) = tmp_path.iterdir()
    file.unlink()
    assert first.row_count == 100
    assert sum(batch.row_count for batch in reader) > 1_000


@pytest.mark.usefixtures("little_inline")
def test_task_that_runs_twice_writes_two_files(tmp_path: Path) -> None:
    first, second = (list(send(0, batches(20), str(tmp_path))) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 2
    assert rows_of(first) == rows_of(second)


def test_channel_asks_for_more_with_the_last_answer_it_has() -> None:
    asked: list[int] = []
    channel = AnswerChannel(COLUMNS, lambda: asked.append(1))
    for answer in send(0, batches(3), None):
        channel.add(answer)
    assert channel.poll() is not None
    assert channel.poll() is not None
    assert asked == []
    assert channel.poll() is not None
    assert asked
    assert channel.poll() is None
    assert not channel.is_finished
    for answer in send(0, batches(1), None):
        channel.add(answer)
    channel.finish()
    assert not channel.is_finished
    assert channel.poll() is not None
    assert channel.poll() is None
    assert channel.is_finished


def test_channel_without_answers_finishes() -> None:
    channel = AnswerChannel(COLUMNS, lambda: None)
    assert channel.poll() is None
    channel.finish()
    assert channel.is_finished


@pytest.mark.usefixtures("little_inline")
@pytest.mark.parametrize("rows", [10, 100, 1_000, 10_000])
def test_no_task_sends_more_through_spark_than_its_limit(tmp_path: Path, rows: int) -> None:
    """However large the first batch is: it was once sent whatever its size."""
    sent = list(send(1, batches(4, rows), str(tmp_path)))
    inline = [each for each in sent if len(list(batches_of(each, COLUMNS))) == 1 and rows_of([each])]
    in_file = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert sum(map(len, sent)) <= answers.INLINE_BYTES + 1_000
    assert (in_file > 0) == (rows >= 100)
    assert bool(inline) == (rows <= 100)
    assert [row[0] for row in rows_of(sent)] == list(range(4 * rows))
