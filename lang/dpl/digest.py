"""A hash.  For `hashlib`, Python loads OpenSSL, which takes longer than what is hashed here."""

try:
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b
