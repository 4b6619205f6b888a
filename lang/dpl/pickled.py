"""Pickles.  Python's module for them has a second implementation, which takes longer to load than what is read here."""

try:
    from _pickle import dumps as dumps
    from _pickle import loads as loads
except ImportError:
    from pickle import dumps as dumps
    from pickle import loads as loads
