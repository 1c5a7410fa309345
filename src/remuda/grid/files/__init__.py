"""What `Grid.load` and COPY read and write: tables, data frames, Parquet, CSV and JSON files.

Nothing here knows queries.
"""
