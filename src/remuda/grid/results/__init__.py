"""What a result becomes outside the engine: text and HTML to look at, data frames, JSON, a feed of changes.

Nothing here reads rows by itself: `Result` hands them over.
"""
