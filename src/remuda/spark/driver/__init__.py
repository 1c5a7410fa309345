"""The driver: finding a Java, starting and describing a session, running a job of tasks, reading its failures.

Nothing here knows plans or maps.
"""
