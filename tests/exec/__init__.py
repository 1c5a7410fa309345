"""Tests of the operators, one by one, over scripted input."""
