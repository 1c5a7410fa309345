"""Explore rules: other trees with the same rows, better or not; the search prices them."""
