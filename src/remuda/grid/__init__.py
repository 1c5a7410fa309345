"""`Grid`, `Session`, `Map`, `Result`, plan cache and settings: the only package that knows all others.

A session finds the plan of a query in the cache or makes it (parse, bind, optimise, split), binds the parameters, runs
it and hands back a `Result`. A plan that turns out to be stale is made again, unseen by the user as long as no row was
handed out.
"""

from typing import TYPE_CHECKING

from remuda.grid.grid import Grid, open_grid
from remuda.grid.session import Session
from remuda.lazy_names import lazy_names

if TYPE_CHECKING:
    from remuda.grid.file_tables import load_files
    from remuda.grid.map import Map
    from remuda.grid.result import Result
    from remuda.grid.rows import Row

__all__ = ["Grid", "Map", "Result", "Row", "Session", "load_files", "open_grid"]

__getattr__ = lazy_names(__name__, {"Map": "map", "Result": "result", "Row": "rows", "load_files": "file_tables"})
