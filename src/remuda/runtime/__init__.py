"""Running plans in this process: the scheduler that advances fragments, the channels between them, executions.

The reader of the result advances the root fragment, so a query that fits one fragment needs no hand-over between
threads at all. The other fragments are advanced by the few threads of the scheduler, many queries at a time; a fragment
that has to wait leaves its thread. This package runs what a plan says; it knows neither SQL nor the plan cache.
`remuda.runtime.local`, which starts a plan, brings all operators with it: it is imported with the first plan.
"""

from remuda.runtime.channel import BoundedChannel
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.scheduler import Scheduler

__all__ = [
    "BoundedChannel",
    "Execution",
    "QueryState",
    "Scheduler",
]
