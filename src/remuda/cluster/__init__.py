"""Members, the partition table, and what happens to it when members come and go.

A member owns partitions and works on them. In this process members share the storage, so a migration moves no bytes:
it changes who works on a partition, gives the table a new version and so makes every plan of the old version stale.
This package knows no queries.
"""

from remuda.cluster.cluster import Cluster, Member, PartitionTable

__all__ = ["Cluster", "Member", "PartitionTable"]
