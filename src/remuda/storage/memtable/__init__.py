"""The memtable: recent writes as an append-only log, its Arrow columns, and the memtable read at a snapshot."""
