"""Tests of the grid: the life of a query and the faces of its results."""
