"""TPC-H: its tables, its 22 queries with their validation parameters, and its data."""
