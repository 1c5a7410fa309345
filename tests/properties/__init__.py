"""Random maps, indexes, predicates and writes, and a plain Python model that says what must come out.

The model is written from the rules of SQL (three-valued logic, exact comparison, NaN the greatest number), shares no
code with the engine, and is as slow and as plain as it can be.
"""
