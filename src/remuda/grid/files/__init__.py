"""What `Grid.load` and COPY read and write: data frames, rows of Python, files in the formats of `formats.py`.

Nothing here knows queries.
"""
