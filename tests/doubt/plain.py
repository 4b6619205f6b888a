"""The back end "plain": draws as hypothesis does by itself, without drawing again what it drew before.

hypothesis likes to vary what it has seen and to draw it twice; that helps to find rare bytes, and here makes a fifth of
the programs that one asks for.  What fails is shrunk as ever.
"""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

PLAIN = "plain"


class Plain(HypothesisProvider):
    """hypothesis gives up its own ways for every back end but its own."""


AVAILABLE_PROVIDERS[PLAIN] = f"{__name__}.{Plain.__name__}"
