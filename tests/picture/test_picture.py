"""The picture of a plan says what the text, the JSON and the memo say, and nothing else gets into it."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import remuda
from remuda.errors import RemudaError, SqlError
from remuda.plan.picture.cards import Card, Reach
from remuda.plan.picture.strip import MOST_MEMBERS, draw_strip, member_cells
from remuda.plan.walk import walk
from remuda.storage import hash_values, partition_of

SVG = "{http://www.w3.org/2000/svg}"
JOIN = (
    "SELECT c.country, COUNT(*), SUM(o.amount) FROM customers c JOIN orders o ON o.customer = c.id "
    "WHERE o.amount > 990 AND c.name LIKE '%7' GROUP BY c.country ORDER BY 3 DESC"
)
QUERIES = [
    JOIN,
    "SELECT * FROM orders WHERE customer = 5 AND id = 7",
    "SELECT * FROM orders WHERE customer IN (1, 2, 3) AND amount > 5",
    "SELECT customer, id FROM orders WHERE amount > 10 ORDER BY amount LIMIT 5",
    "SELECT 1 UNION ALL SELECT id FROM customers WHERE country IN (SELECT status FROM orders)",
    "WITH t AS (SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer) SELECT * FROM t x JOIN t y USING (s)",
    "SELECT id, RANK() OVER (PARTITION BY country ORDER BY name) FROM customers",
    "UPDATE written SET n = 2 WHERE id = 3",
    "INSERT INTO written SELECT id, 1 FROM customers WHERE id > 1000",
]
DRAWN = {"svg", "style", "rect", "path", "text", "tspan", "g", "title"}


def operators(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan["inputs"]:
        yield from operators(below)


def cards_of(drawing: ET.Element) -> list[ET.Element]:
    return [group for group in drawing.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]


def text_of(element: ET.Element) -> str:
    """What is drawn, without what is shown when the pointer rests."""
    parts = [each for each in element.iter() if each.tag == f"{SVG}text"]
    return " ".join("".join(each.itertext()) for each in parts)


def card_of(root: Card, name: str) -> Card:
    return next(each for each in walk(root) if f"{each.name} {each.subject}".startswith(name))


def count(grid: Any, relation: str) -> int:
    ((number,),) = grid.sql(f"SELECT COUNT(*) FROM {relation}")
    return int(number)


def picture_root(grid: Any, text: str, *values: Any, **options: Any) -> Card:
    root: Card = grid.explain(text, *values, **options)._picture.root
    return root


@pytest.mark.parametrize("analyze", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_there_is_a_card_for_each_operator_with_its_attributes(grid: Any, query: str, analyze: bool) -> None:
    drawing = ET.fromstring(grid.explain(query, format="svg", analyze=analyze))
    plan = json.loads(grid.explain(query, format="json"))["plan"]
    cards, nodes = cards_of(drawing), list(operators(plan))
    assert len(cards) == len(nodes)
    for card, node in zip(cards, nodes, strict=True):
        title = card.find(f"{SVG}title").text
        assert title.split("\n")[0] == re.sub(r" ?\[[A-Z]+.*\]$", "", node["description"])
        for detail in node["details"]:
            for field in detail.split("   "):
                assert field in title
        assert node["description"].split()[0] in text_of(card)


@pytest.mark.parametrize("query", QUERIES)
def test_the_drawing_stands_alone(grid: Any, query: str) -> None:
    text = grid.explain(query, analyze=True).to_svg()
    drawing = ET.fromstring(text)
    assert {each.tag.removeprefix(SVG) for each in drawing.iter()} <= DRAWN
    assert not [name for each in drawing.iter() for name in each.attrib if name in {"id", "href"} or name[:2] == "on"]
    assert text.count("http") == 1, "only the name space"
    assert "url(" not in text
    assert "@import" not in text


def test_the_same_plan_gives_the_same_text(grid: Any) -> None:
    assert grid.explain(JOIN, format="svg") == grid.explain(JOIN, format="svg")
    assert grid.explain(JOIN, format="html") == grid.explain(JOIN, format="html")


def test_rows_that_came_stand_beside_the_estimate(grid: Any) -> None:
    actual = count(grid, "customers WHERE name LIKE '%7'")
    root = picture_root(grid, JOIN, analyze=True)
    scan = card_of(root, "MapScan customers")
    assert scan.run.rows == actual
    assert scan.row_error == pytest.approx(max(scan.rows / actual, actual / scan.rows))
    drawn = next(
        each
        for each in cards_of(ET.fromstring(grid.explain(JOIN, analyze=True).to_svg()))
        if "MapScan" in text_of(each)
    )
    assert f"{actual} row" in text_of(drawn)


def test_a_wrong_estimate_is_marked(grid: Any) -> None:
    query = "SELECT name FROM customers WHERE id % 10 = 7 AND id % 5 = 2"  # the second follows from the first
    scan = card_of(picture_root(grid, query, analyze=True), "MapScan customers")
    assert scan.row_error >= 2
    (drawn,) = (
        each
        for each in cards_of(ET.fromstring(grid.explain(query, analyze=True).to_svg()))
        if "MapScan" in text_of(each)
    )
    pills = [each.get("class") for each in drawn.iter(f"{SVG}rect") if "pill" in each.get("class", "")]
    assert pills == ["pill fair" if scan.row_error < 10 else "pill bad"]


def test_a_right_estimate_is_not_marked(grid: Any) -> None:
    text = grid.explain("SELECT id FROM customers", analyze=True).to_svg()
    assert 'class="pill' not in text
    assert "estimated" in text


def test_shares_of_time_add_up_and_one_is_the_slowest(grid: Any) -> None:
    cards = list(walk(picture_root(grid, JOIN, analyze=True)))
    assert sum(each.run.share for each in cards) == pytest.approx(1.0)
    assert [each.run.is_slowest for each in cards].count(True) == 1
    slowest = next(each for each in cards if each.run.is_slowest)
    text = grid.explain(JOIN).to_svg()
    assert "most time" not in text, "nothing ran"
    assert slowest.run.share == max(each.run.share for each in cards)


def test_fragments_and_exchanges_are_marked(grid: Any) -> None:
    cards = list(walk(picture_root(grid, JOIN)))
    assert [each.fragment for each in cards if each.fragment] == [
        "fragment 0 · coordinator",
        "fragment 1 · member-1, member-2, member-3",
    ]
    exchange = next(each for each in cards if each.kind == "move")
    assert exchange.inputs[0].fragment.startswith("fragment 1")
    assert grid.explain(JOIN).to_svg().count('class="edge move"') == 1


def test_what_was_decided_at_execution_is_shown(grid: Any) -> None:
    run = json.loads(grid.explain(JOIN, format="json", analyze=True))["plan"]
    decided = [each for node in operators(run) for each in node["actual"]["decisions"]]
    assert decided
    drawn = text_of(ET.fromstring(grid.explain(JOIN, format="svg", analyze=True)))
    for each in decided:
        assert f"◆ {each}" in drawn


@pytest.mark.parametrize("keys", [[5], [1, 2, 3], list(range(40))])
def test_touched_partitions_are_those_of_the_keys(grid: Any, keys: list[int]) -> None:
    query = f"SELECT amount FROM orders WHERE customer IN ({', '.join(map(str, keys))}) AND status <> 'x'"
    definition = grid.store.catalog.find_map("orders", ("public",))
    type_ = definition.column("customer").type
    expected = {partition_of(hash_values([key], [type_]), definition.partitions) for key in keys}
    reach = card_of(picture_root(grid, query), "MapScan orders").reach
    assert reach.touched == expected
    drawn = [
        each.get("d").count("M")
        for each in ET.fromstring(grid.explain(query, format="svg")).iter(f"{SVG}path")
        if each.get("class") == "touched"
    ]
    assert sum(drawn) == len(expected)
    assert len(drawn) == sum(not expected.isdisjoint(owned) for _, owned in reach.owned)
    assert {partition for _, owned in reach.owned for partition in owned} == set(range(definition.partitions))


def test_partitions_that_wait_for_values_are_left_open(grid: Any) -> None:
    query = "SELECT amount FROM orders WHERE customer = ? AND status <> 'x'"
    assert card_of(picture_root(grid, query), "MapScan").reach.touched is None
    assert "decided by values" in grid.explain(query).to_svg()
    assert len(card_of(picture_root(grid, query, 5), "MapScan").reach.touched) == 1
    assert "1 of 271" in grid.explain(query, 5).to_svg()


def test_a_scan_without_bounds_reads_all_partitions(grid: Any) -> None:
    assert card_of(picture_root(grid, "SELECT name FROM customers"), "MapScan").reach.is_everything
    assert "all 271" in grid.explain("SELECT name FROM customers").to_svg()


def test_many_members_and_partitions_stay_small() -> None:
    owned = tuple((f"member-{at}", tuple(range(at, 10_000, 50))) for at in range(50))
    reach = Reach(owned, frozenset({3, 4, 1234}))
    markup, height = draw_strip(reach, 0.0, 0.0, 300.0)
    assert height < 150
    assert markup.count('class="untouched"') <= MOST_MEMBERS
    assert "3 of 10000" in markup
    one = Reach((("member-1", tuple(range(5_000))),), frozenset({0, 4_999}))
    (block,) = member_cells(one, 40)
    assert len(block.cells) * block.size >= 5_000
    assert [at for at, touched in enumerate(block.cells) if touched] == [0, len(block.cells) - 1]


def test_paths_not_taken_are_those_of_the_memo(grid: Any) -> None:
    query = "SELECT customer, status FROM orders WHERE amount > 999"
    scan = card_of(picture_root(grid, query), "IndexScan orders")
    memo = json.loads(grid.explain(f"EXPLAIN (MEMO, FORMAT JSON) {query}"))
    group = next(each for each in memo["groups"] if each["expressions"] == ["Scan orders"])
    asked = next(each for each in group["asked"] if each["traits"] == "[PARTITIONED]")
    chosen = asked["alternatives"][asked["winner"]]
    assert chosen["cost"] == pytest.approx(scan.cost)
    others = [each for each in asked["alternatives"] if each is not chosen]
    assert [(each.description, each.cost) for each in scan.paths.not_taken] == [
        (each["description"].partition(" [")[0], each["cost"]) for each in others
    ]
    drawn = grid.explain(query).to_svg()
    assert "MapScan orders" in drawn
    assert f"{round(others[0]['cost']):,}" in drawn


def test_a_lookup_that_was_planned_without_a_search_has_its_alternatives(grid: Any) -> None:
    lookup = card_of(picture_root(grid, "SELECT * FROM orders WHERE customer = ? AND id = ?"), "KeyLookup orders")
    assert [each.description for each in lookup.paths.not_taken] == ["MapScan orders"]
    assert lookup.paths.not_taken[0].cost > lookup.paths.taken == lookup.cost


def test_joins_have_alternatives_and_none_is_cheaper_than_what_was_taken(grid: Any) -> None:
    cards = [each for query in QUERIES for each in walk(picture_root(grid, query))]
    assert any(each.paths for each in cards if each.kind == "join")
    for paths in [each.paths for each in cards if each.paths is not None]:
        costs = [other.cost for other in paths.not_taken]
        assert costs == sorted(costs)
        assert costs[0] >= paths.taken


def test_below_a_limit_the_costs_of_first_rows_are_compared(grid: Any) -> None:
    """The first five rows of the index in its order cost far less than all of them, which the card says beside them."""
    query = "SELECT customer, id FROM orders WHERE amount > 10 ORDER BY amount LIMIT 5"
    scan = card_of(picture_root(grid, query), "IndexScan orders")
    assert scan.paths is not None
    assert scan.paths.of_first_rows
    assert scan.paths.taken < scan.cost / 100
    assert scan.paths.taken < scan.paths.not_taken[0].cost
    assert "cost of first rows" in grid.explain(query).to_svg()
    assert "cost of first rows" not in grid.explain("SELECT customer FROM orders WHERE amount > 999").to_svg()


def test_fewer_rows_than_estimated_are_no_error_where_a_limit_ends_the_operator(grid: Any) -> None:
    ordered = grid.explain("SELECT customer FROM orders WHERE amount > 10 ORDER BY amount LIMIT 5", analyze=True)
    scan = card_of(ordered._picture.root, "IndexScan orders")
    assert scan.is_stopped
    assert scan.rows > 10 * scan.run.rows
    assert scan.row_error == 1.0
    assert "worst estimate" not in ordered.to_svg()
    grouped = "SELECT customer, COUNT(*) FROM orders WHERE amount > 10 GROUP BY customer LIMIT 5"
    assert not card_of(picture_root(grid, grouped, analyze=True), "MapScan orders").is_stopped


HOSTILE = [
    "<script>alert(1)</script>",
    '"onload="alert(1)',
    "</svg><b>",
    "]]>",
    "a&amp;b",
    "'x",
    "\u202eturned",
    "日本語",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_literals_never_become_markup(name: str, tmp_path: Path) -> None:
    quoted, literal = name.replace('"', '""'), name.replace("'", "''")
    with remuda.open() as grid:
        grid.sql(f'CREATE TABLE "{quoted}" (id BIGINT, "c{quoted}" VARCHAR, PRIMARY KEY (id))')
        query = f"""SELECT "c{quoted}", '{literal}' AS x FROM "{quoted}" WHERE "c{quoted}" = '{literal}' AND id > :v"""
        explained = grid.explain(query, v=3, analyze=True)
    drawing = ET.fromstring(explained.to_svg())
    assert {each.tag.removeprefix(SVG) for each in drawing.iter()} <= DRAWN
    visible = name.replace("\u202e", "\\u202e")
    assert visible in "".join(drawing.itertext())
    assert not [key for each in drawing.iter() for key in each.attrib if key.startswith("on")]
    for page in (explained.to_html(), explained._repr_html_()):
        parser = _Tags()
        parser.feed(page)
        assert parser.tags <= DRAWN | {"html", "head", "meta", "body", "div", "details", "summary", "pre"}
        assert not parser.handlers


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_a_plan_of_two_hundred_operators_is_drawn(grid: Any) -> None:
    part = (
        "SELECT c.name AS n, SUM(o.amount) AS s FROM customers c JOIN orders o ON o.customer = c.id "
        "WHERE o.id {} GROUP BY c.name"
    )
    query = " UNION ALL ".join(part.format(f"% {number + 3} = 1") for number in range(35))
    drawing = ET.fromstring(grid.explain(query, format="svg"))
    assert len(cards_of(drawing)) > 200
    assert float(drawing.get("width")) < 7_000


def test_an_explanation_is_a_str(grid: Any, tmp_path: Path) -> None:
    explained = grid.explain(JOIN)
    assert issubclass(type(explained), str)
    assert explained == "\n".join(row.plan for row in grid.sql(f"EXPLAIN {JOIN}"))
    assert f"{explained}" == explained
    assert explained.split("\n")[0].startswith("Root")
    copy = pickle.loads(pickle.dumps(explained))
    assert copy == explained
    assert copy.to_svg() == explained.to_svg()
    assert explained._repr_html_().startswith("<div")
    explained.save(tmp_path / "plan.svg")
    explained.save(str(tmp_path / "plan.html"))
    explained.save(tmp_path / "plan.txt")
    assert (tmp_path / "plan.svg").read_text() == explained.to_svg()
    assert (tmp_path / "plan.html").read_text() == grid.explain(JOIN, format="html")
    assert (tmp_path / "plan.txt").read_text() == f"{explained}\n"


def test_the_statement_gives_one_value(grid: Any) -> None:
    for format_ in ("SVG", "HTML"):
        (row,) = grid.sql(f"EXPLAIN (FORMAT {format_}) {JOIN}")
        assert row.plan == grid.explain(JOIN, format=format_.lower())
    (row,) = grid.sql(f"EXPLAIN (ANALYZE, FRAGMENTS, FORMAT SVG) {JOIN}")
    assert "EXPLAIN ANALYZE" in row.plan


def test_what_has_no_picture_says_so(grid: Any) -> None:
    for mode in ("MEMO", "STEPS", "LOGICAL"):
        explained = grid.explain(f"EXPLAIN {mode} {JOIN}")
        assert explained._repr_html_().startswith("<pre>")
        with pytest.raises(RemudaError, match="only a plan has a picture"):
            explained.to_svg()
        with pytest.raises(SqlError, match=f"FORMAT SVG shows the plan, not {mode}"):
            grid.explain(f"EXPLAIN {mode} {JOIN}", format="svg")
        with pytest.raises(SqlError, match=f"ANALYZE shows the plan, not {mode}"):
            grid.explain(f"EXPLAIN {mode} {JOIN}", analyze=True)
    with pytest.raises(SqlError, match="format must be one of text, json, html, svg, not 'pdf'"):
        grid.explain(JOIN, format="pdf")


def test_parameters_and_the_statement_stand_above_the_cards(grid: Any) -> None:
    drawn = text_of(ET.fromstring(grid.explain("SELECT id\n  FROM orders\n WHERE amount > ?;", 990.5, format="svg")))
    assert "SELECT id" in drawn
    assert "\u00a0\u00a0FROM orders" in drawn
    assert "?0 = 990.5" in drawn
    drawn = text_of(ET.fromstring(grid.explain("EXPLAIN (ANALYZE, FORMAT SVG) SELECT id FROM orders")))
    assert "FORMAT SVG" not in drawn


def test_analyze_writes_once(grid: Any) -> None:
    before = count(grid, "written")
    grid.explain("INSERT INTO written VALUES (77777, 1)", analyze=True)
    assert count(grid, "written") == before + 1
    grid.explain("INSERT INTO written VALUES (77778, 1)", format="svg")
    assert count(grid, "written") == before + 1
