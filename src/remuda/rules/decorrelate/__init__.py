"""The rewrite of sub-queries: every `Apply` becomes a join.

It runs once, before the normalise rules, and knows neither the memo nor costs.
"""
