"""The trace of the rules: what fired, in which order, and what it changed."""

from __future__ import annotations

import remuda
from remuda.grid.plan_trace import explain_steps

EXPECTED = """\
1. remove_project
   - Project   id
   -   Scan m   columns: id
   + Scan m   columns: id
2. push_filter_past_project
   - Filter   id = 5
   -   Project   id := id
   + Project   id := id
   +   Filter   id = 5
         Scan m   columns: id
3. push_filter_into_scan
   - Filter   id = 5
   -   Scan m   columns: id
   + Scan m   columns: id   filter: id = 5
4. merge_projects
   - Project   id
   -   Project   id := id
   -     Scan m   columns: id   filter: id = 5
   + Project   id := id
   +   Scan m   columns: id   filter: id = 5
5. remove_renaming_below_root
     Root   id
   -   Project   id := id
   -     Scan m   columns: id   filter: id = 5
   +   Scan m   columns: id   filter: id = 5"""


def test_each_step_shows_what_it_changed() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, a BIGINT, PRIMARY KEY (id))")
        assert explain_steps(grid.queries, "SELECT id FROM (SELECT id FROM m) AS d WHERE id = 5") == EXPECTED
