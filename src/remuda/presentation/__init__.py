"""How statements, names, times and rows are shown to people: spans of source text, the nearest name, durations, tables.

It knows nothing of the engine: errors, the shell, results and benchmarks print by it.
"""
