"""What the language asks of an operating system: `system.py` is its host (`dpl/host.py`).

Nothing is imported here, so that a program from the cache starts without what it does not use.
"""
