"""The command `remuda`: a shell, single statements, the demonstration, the benchmarks.

A face like any other: it uses what `remuda.open` gives and must not know what is behind it.
"""

from remuda.cli.arguments import main

__all__ = ["main"]
