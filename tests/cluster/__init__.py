"""Tests of members, the partition table and migration."""
