"""Operations of MPI for the interpreter; `rt/message_passing.rt` has them for native code.

Before a collective operation the ranks compare what they ask for, and with how many words.  So ranks that do different
things end with a message; MPI itself would wait for ever, or read beyond the data.
"""

from __future__ import annotations

from typing import NoReturn

from dpl import host
from dpl.diagnostics import DplError
from dpl.eval.values.value import Array

# as `stdlib/mpi.dp` numbers them; END is asked for when a program ends
RANK, RANKS, BARRIER, SUM, ADD, BROADCAST, GATHER, ROTATE, SEND, RECEIVE, CALLS, END = range(12)
WORDS = {
    BARRIER: "a barrier", SUM: "a sum", ADD: "a sum", BROADCAST: "a broadcast", GATHER: "all_gather",
    ROTATE: "a rotation", END: "its end",
}  # fmt: skip


def mpi(what: int, peer: int, of: int, words: Array) -> Array:
    """The words that an operation gives: `what` with the rank `peer`.  It may belong to the derivative of an operation:
    of that which was the last of the first `of` ones."""
    try:
        ranks = host.current.ranks()
    except OSError as error:
        fail(str(error))
    if what in (RANK, RANKS, CALLS):
        given = [known(ranks)[what]]
    elif what in (SEND, RECEIVE):
        given = point_to_point(ranks, what, peer, words.data)
    else:
        given = collective(ranks, what, peer, of, words.data)
    return Array((len(given),), given)


def known(ranks: host.Ranks | None) -> dict[int, int]:
    return {RANK: ranks.rank, RANKS: ranks.size, CALLS: ranks.calls} if ranks else {RANK: 0, RANKS: 1, CALLS: 0}


def collective(ranks: host.Ranks | None, what: int, peer: int, of: int, words: list[int]) -> list[int]:
    size = ranks.size if ranks else 1
    if what == BROADCAST:
        check_rank(peer, size)
    if ranks is None or size == 1:
        return words
    if apart := disagreement(ranks, what, peer, len(words), of):
        fail(apart)
    given = {
        SUM: lambda: ranks.reduce(words, "sum of floats"),
        ADD: lambda: ranks.reduce(words, "sum"),
        BROADCAST: lambda: ranks.broadcast(words, peer),
        GATHER: lambda: ranks.gather(words),
        ROTATE: lambda: ranks.rotate(words, peer),
    }
    return given[what]() if what in given else words


def point_to_point(ranks: host.Ranks | None, what: int, peer: int, words: list[int]) -> list[int]:
    """Sends to a rank, or receives from it, how many numbers there are, and then these."""
    check_rank(peer, ranks.size if ranks else 1)
    if ranks is None or peer == ranks.rank:
        fail(f"rank {peer} sends to itself, or receives from itself")
    if what == SEND:
        ranks.send([len(words)], peer)
        ranks.send(words, peer)
        return words
    [count] = ranks.receive(1, peer)
    if count != len(words):
        fail(f"a message of {count} numbers came where {len(words)} were to come")
    return ranks.receive(count, peer)


def check_rank(rank: int, size: int) -> None:
    if not 0 <= rank < size:
        fail(f"there is no rank {rank}: the number of ranks is {size}")


def disagreement(ranks: host.Ranks, what: int, peer: int = 0, count: int = 0, of: int = 0) -> str:
    """How the ranks differ in what they ask for; empty if they do not."""
    mine = [what, count, peer, of]
    ranks.calls += 1
    found = ranks.reduce([*mine, *(-x for x in mine)], "greatest")
    (what, count, peer, of), (least_what, least_count, least_peer, least_of) = found[:4], [-x for x in found[4:]]
    if of != least_of:
        return "only some ranks take the derivative of an operation: each rank must use its result"
    if what != least_what:
        return f"the ranks do not do the same: one is at {WORDS[least_what]}, while another is at {WORDS[what]}"
    if count != least_count:
        return f"the ranks' data differ in size: one has {least_count} numbers, another {count}"
    if peer != least_peer:
        return f"the ranks do not name the same rank: one names {least_peer}, another {peer}"
    return ""


def fail(why: str) -> NoReturn:
    raise DplError.at("R0513", why) from None
