"""How a store gets from one durable state to the next: loading, recovery, commits, retries of a commit that lost.

A commit writes the folder and the write-ahead log and installs the new state. It knows nothing of how rows are read.
"""
