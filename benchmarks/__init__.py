"""Measurements of Remuda alone that need a checkout: `python -m benchmarks [ending|space|planning|footprint]`.

Remuda beside its peers is measured by `remuda bench`, which is part of the package (`remuda.bench`).
"""
