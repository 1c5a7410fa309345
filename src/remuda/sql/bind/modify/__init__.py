"""Binding of INSERT, SINK, UPDATE and DELETE: each is a query for rows, and a `Modify` on top."""
