"""EXPLAIN (STEPS): every rewrite by the name of its rule, in order, with what it changed."""

from __future__ import annotations

import json

import remuda

QUERY = "SELECT id FROM (SELECT id FROM m) AS d WHERE id = 5"
EXPECTED = """\
1. trim_columns
     Root   id
       Project   id
         Filter   id = 5
           Project   id := id
             Project   id
   -           Scan m   columns: id, a
   +           Scan m   columns: id
2. remove_project
   - Project   id
   -   Scan m   columns: id
   + Scan m   columns: id
3. push_filter_past_project
   - Filter   id = 5
   -   Project   id := id
   + Project   id := id
   +   Filter   id = 5
         Scan m   columns: id
4. push_filter_into_scan
   - Filter   id = 5
   -   Scan m   columns: id
   + Scan m   columns: id   filter: id = 5
5. merge_projects
   - Project   id
   -   Project   id := id
   -     Scan m   columns: id   filter: id = 5
   + Project   id := id
   +   Scan m   columns: id   filter: id = 5
6. remove_renaming_below_root
     Root   id
   -   Project   id := id
   -     Scan m   columns: id   filter: id = 5
   +   Scan m   columns: id   filter: id = 5
7. memo search: implement_root, implement_scan
     Root                                                                     rows≈0 cost≈1500
       KeyLookup m [PARTITIONED by id]                                        rows≈0 cost≈1500
           key: id = 5   columns: id
           partitionedBy=[id]"""


def test_each_step_shows_what_it_changed() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, a BIGINT, PRIMARY KEY (id))")
        assert grid.explain(f"EXPLAIN (STEPS) {QUERY}") == EXPECTED
        document = json.loads(grid.explain(f"EXPLAIN (STEPS, FORMAT JSON) {QUERY}"))
        steps = document["steps"]
        assert [f"{number}. {step['rule']}" for number, step in enumerate(steps, 1)] == [
            line for line in EXPECTED.split("\n") if line[0].isdigit() and "memo search" not in line
        ]
        assert steps[3]["before"]["operator"] == "Filter"
        assert steps[3]["after"]["description"] == "Scan m   columns: id   filter: id = 5"
        assert document["search_rules"] == ["implement_root", "implement_scan"]
        assert document["plan"]["inputs"][0]["operator"] == "KeyLookup"


def test_a_subquery_that_becomes_a_join_is_a_step() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, a BIGINT, PRIMARY KEY (id))")
        text = grid.explain("EXPLAIN STEPS SELECT id FROM m WHERE a IN (SELECT id FROM m WHERE a > 3)")
    assert text.startswith("1. decorrelate\n")
    assert "   -       Apply MARK" in text
    assert "   +       Join MARK" in text
