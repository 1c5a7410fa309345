"""The life of a query: `Grid`, `Map`, `Result`, plan cache and settings. The only package that knows all others.

`Grid.sql` finds the plan in the cache or makes it (parse, bind, optimise, split), binds the parameters, runs it and
hands back a `Result`. A plan that turns out to be stale is made again, unseen by the user as long as no row was handed
out.
"""

from remuda.grid.grid import Grid, open_grid
from remuda.grid.map import Map
from remuda.grid.result import Result

__all__ = ["Grid", "Map", "Result", "open_grid"]
