"""TPC-DS: its 24 tables and 99 queries, which packages of the index make; nothing of them is kept here."""
