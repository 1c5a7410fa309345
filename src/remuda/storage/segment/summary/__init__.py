"""What a segment knows of the values of its columns: counts, most common values, histograms, and how they are saved.

Knows arrays of values; neither files nor maps.
"""
