"""What a result becomes outside the engine: text and HTML to look at, data frames, JSON.

Nothing here reads rows by itself: `Result` hands them over.
"""
