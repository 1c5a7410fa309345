"""What runs the text files among the tests: golden plans and `.slt` corpora.

The harness knows Remuda only by its public face, so that a test which passes says something about what users get.
"""
