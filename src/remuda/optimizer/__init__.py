"""Physical optimisation: the memo, the top-down search, costs, cardinalities, access paths and partition pruning.

It turns a normalised logical tree into the cheapest physical tree for given statistics, members and backends. It
knows no data, only `MapStatistics`, and nothing of how a plan is run.
"""

from remuda.optimizer.optimize import Optimized, OptimizerSettings, optimize
from remuda.rules.extensions import register_cost, register_rule

__all__ = ["Optimized", "OptimizerSettings", "optimize", "register_cost", "register_rule"]
