"""An image: a linked program, which can be loaded at any address.

It is one piece: code | constants and global offset table | data | zeros, each from a page on.  What is left to do when
it is loaded is the list of words that hold addresses.  This module imports little, as programs from the cache need it.
"""

from __future__ import annotations

from struct import iter_unpack, pack_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from mmap import mmap

ADDRESSES = (1 << 64) - 1
WORD = "<3q"  # offset of the word; what is added: 0 the image's address, i > 0 that of import i - 1; an addend


class Image:
    """`contents` has the image without the zeros at its end; `code` and `constants` are the ends of these parts, and
    `size` that of all.  `words` are packed as WORD.  `exports` has the offsets of some symbols, `imports` the names of
    C functions and variables.  `cells` has the offsets of the cells that replaceable functions are called through."""

    __slots__ = ("cells", "code", "constants", "contents", "exports", "imports", "size", "words")

    def __init__(self, contents: bytes, code: int, constants: int, size: int, words: bytes,
                 imports: Sequence[str], exports: Mapping[str, int],
                 cells: Mapping[str, int]) -> None:  # fmt: skip
        self.contents = contents
        self.code = code
        self.constants = constants
        self.size = size
        self.words = words
        self.imports = imports
        self.exports = exports
        self.cells = cells

    def fill(self, memory: bytearray | mmap, addresses: Sequence[int]) -> None:
        """Write the image to the memory at `addresses[0]`; the others are those of the imports."""
        memory[: len(self.contents)] = self.contents
        for offset, of, addend in iter_unpack(WORD, self.words):
            pack_into("<Q", memory, offset, (addresses[of] + addend) & ADDRESSES)
