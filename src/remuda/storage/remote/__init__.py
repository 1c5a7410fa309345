"""Stores on object storage: addresses, files, the local mirror and its cache, delivery.

Nothing outside knows that a folder is remote but for its address.
"""
