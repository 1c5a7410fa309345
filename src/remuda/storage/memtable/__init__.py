"""The memtable: recent writes as an append-only log, its Arrow columns, and the log read at a snapshot."""
