"""Constants and quoted names in LLVM text."""

from __future__ import annotations

import re
import struct

from dplc.machine.llvm.types import SCALARS


def number(value: int | float | bool, name: str) -> str:
    """The literal of a number, exactly."""
    match SCALARS[name]:
        case "i1":
            return "true" if value else "false"
        case "double":
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        case "float":
            single = struct.unpack("<f", struct.pack("<f", value))[0]
            return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
        case "half":
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
        case whole:
            bits = int(whole[1:])
            wrapped = int(value) & ((1 << bits) - 1)
            return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def escape(data: bytes) -> str:
    """Escapes bytes for LLVM's quoted strings and names."""
    return "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)


def unescape(text: str) -> bytes:
    """The bytes of a quoted text of LLVM, in which `\\xx` is a byte in hexadecimal digits."""
    return re.sub(rb"\\(..)", lambda m: bytes.fromhex(m[1].decode()), text.encode())
