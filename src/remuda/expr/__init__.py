"""Scalar expressions: the nodes, the function registry, and evaluation over Arrow batches and over one row.

Both evaluations give the same results: three-valued logic, overflow and division by zero as errors, NaN equal to
itself and greater than every number. An expression names columns by their query-unique ids; it knows neither maps
nor plans nor SQL text.
"""

from remuda.expr.cast.cast import can_cast
from remuda.expr.constant import FALSE, TRUE, Folding, evaluate_constant, evaluate_row_count, fold
from remuda.expr.evaluate.batch_evaluation import BatchExpression, compile_batch, compile_predicate
from remuda.expr.evaluate.dictionary import as_array
from remuda.expr.evaluate.failing import can_fail
from remuda.expr.evaluate.row_evaluation import RowExpression, compile_row
from remuda.expr.function import Datum, Function, Signature
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter, Parameters
from remuda.expr.registry import FUNCTIONS, call, coerce, hints_of
from remuda.expr.render import render
from remuda.expr.walk import (
    children,
    columns_of,
    conjunction,
    conjuncts,
    disjuncts,
    is_constant,
    is_volatile,
    parameters_of,
    rewrite,
    substitute,
    walk,
)

__all__ = [
    "FALSE",
    "FUNCTIONS",
    "TRUE",
    "BatchExpression",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Datum",
    "Expression",
    "Folding",
    "Function",
    "Literal",
    "Parameter",
    "Parameters",
    "RowExpression",
    "Signature",
    "as_array",
    "call",
    "can_cast",
    "can_fail",
    "children",
    "coerce",
    "columns_of",
    "compile_batch",
    "compile_predicate",
    "compile_row",
    "conjunction",
    "conjuncts",
    "disjuncts",
    "evaluate_constant",
    "evaluate_row_count",
    "fold",
    "hints_of",
    "is_constant",
    "is_volatile",
    "parameters_of",
    "render",
    "rewrite",
    "substitute",
    "walk",
]
