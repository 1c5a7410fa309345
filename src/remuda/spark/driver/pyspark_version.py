"""What an older PySpark cannot do: its data sources written in Python take no Arrow batches."""

from __future__ import annotations

from remuda.errors import not_supported

_FIRST = (4, 1)


def refuse_old_pyspark(what: str = "the format remuda") -> None:
    """Raise where PySpark is too old for the format `remuda`, the functions beside it, and `apply`."""
    import pyspark

    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if version < _FIRST:
        raise not_supported(
            f"{what} needs PySpark 4.1 or newer, and this is {pyspark.__version__}",
            suggestion="On PySpark 4.0 grid.load takes data frames, and the queries of a grid run.",
        )
