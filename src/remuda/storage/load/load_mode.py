"""What a load does to the rows that are there, and to those whose key is there."""

from typing import Literal

LoadMode = Literal["append", "replace", "upsert", "apply"]
