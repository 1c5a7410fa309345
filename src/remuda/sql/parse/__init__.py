"""From text to a statement: tokens, the parser of definitions, sqlglot's parser of queries, spans for errors.

Nothing here knows the catalog or a type of a column; what sqlglot reads over is refused here.
"""
