"""A store's folder: manifest, locks, leases, inbox, verification, disposal of obsolete files.

Every file is opened here, relative to its folder and without following links.
"""
