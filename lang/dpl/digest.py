"""Hashes.  For `hashlib`, Python loads OpenSSL, which takes longer than what is hashed here."""

try:
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b

try:
    from _sha256 import sha256 as sha256
except ImportError:  # Python 3.12 and later
    from hashlib import sha256 as sha256
