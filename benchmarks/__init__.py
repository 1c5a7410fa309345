"""Remuda and its peers on the same rows in the same run: `python -m benchmarks`, or `make bench`.

Times on a shared machine wander; ratios taken in one interleaved run do not. So every case runs all its contenders
in turn, again and again, and is read by the ratio of the best times. No time is asserted, and no test depends on one.
"""
