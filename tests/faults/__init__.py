"""Failing disks and power loss: every system call that changes a file fails in turn, or is lost."""
