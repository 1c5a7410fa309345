"""The format `remuda` for every Spark session that sees this package.

Spark looks for packages named `pyspark_*` when a session first asks for a data source written in Python, and takes the
format from their `DefaultSource`. So `spark.read.format("remuda")`, and `USING remuda` in SQL, need no
`remuda.spark.register(spark)`: in new sessions and threads, in clients that speak SQL alone, and on Spark Connect
servers.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import the format when Spark asks for it: the daemon beside this file forks before any thread is started.

    Spark imports all such packages to find one of them: an error here would take other data sources away from users
    whose PySpark is too old for this one.
    """
    if name == "DefaultSource":
        try:
            from pyspark_remuda.daemon import quiet_forked_process
            from remuda.spark.source.data_source import RemudaSource
        except ImportError:
            pass
        else:
            quiet_forked_process()
            return RemudaSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
