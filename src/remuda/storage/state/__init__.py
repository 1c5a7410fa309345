"""What is in force: the versions of a map, whether it may be read and written, the maps and the catalog of a store.

State is installed and read here, under its locks. It does not know how a state becomes durable: `remuda.storage.commit`
writes the folder first and then installs the next state.
"""
