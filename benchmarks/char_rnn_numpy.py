"""The character network of examples/char_rnn.dp in NumPy, with the backward pass written by hand.

    python char_rnn_numpy.py TEXT-FILE ITERATIONS

Same algorithm, same settings, same first weights (Threefry-2x64), so the losses agree until chaos takes over.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HIDDEN, STEPS, RATE = 50, 20, 0.1
ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)


def threefry(key: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two random words for each of the places (0, 0) .. (count - 1, 0) of a key."""
    words = [np.uint64(key), np.uint64(0), np.uint64(key ^ 0x1BD11BDAA9FC1A22)]
    a, b = np.arange(count, dtype=np.uint64) + words[0], np.zeros(count, dtype=np.uint64) + words[1]
    for step in range(20):
        bits = np.uint64(ROTATIONS[step % 8])
        a = a + b
        b = (b << bits | b >> (np.uint64(64) - bits)) ^ a
        if step % 4 == 3:
            turn = step // 4 + 1
            a = a + words[turn % 3]
            b = b + words[(turn + 1) % 3] + np.uint64(turn)
    return a, b


def normal(key: int, *shape: int) -> np.ndarray:
    a, b = (1.1102230246251565e-16 * (word >> np.uint64(11)) for word in threefry(key, int(np.prod(shape))))
    return (np.sqrt(-2.0 * np.log(1.0 - a)) * np.cos(2.0 * np.pi * b)).reshape(shape)


def loss_and_gradient(params, inputs, targets, h):
    """The surprise, the gradient for each parameter, and the last hidden state."""
    wxh, whh, why, bh, by = params
    states, probabilities, loss = [h], [], 0.0
    for c, target in zip(inputs, targets, strict=True):
        h = np.tanh(wxh[c] + whh @ h + bh)
        logits = why @ h + by
        weights = np.exp(logits - logits.max())
        p = weights / weights.sum()
        loss -= np.log(p[target])
        states.append(h)
        probabilities.append(p)
    gradients = [np.zeros_like(p) for p in params]
    d_wxh, d_whh, d_why, d_bh, d_by = gradients
    d_next = np.zeros_like(h)
    for t in reversed(range(len(inputs))):
        d_logits = probabilities[t]
        d_logits[targets[t]] -= 1.0
        d_why += np.outer(d_logits, states[t + 1])
        d_by += d_logits
        d_raw = (1.0 - states[t + 1] ** 2) * (why.T @ d_logits + d_next)
        d_bh += d_raw
        d_wxh[inputs[t]] += d_raw
        d_whh += np.outer(d_raw, states[t])
        d_next = whh.T @ d_raw
    return loss, gradients, h


def train(text: np.ndarray, size: int, iterations: int) -> None:
    params = [0.01 * normal(1, size, HIDDEN), 0.01 * normal(2, HIDDEN, HIDDEN), 0.01 * normal(3, size, HIDDEN)]
    params += [np.zeros(HIDDEN), np.zeros(size)]
    squares = [np.zeros_like(p) for p in params]
    smooth, at, h = STEPS * np.log(size), 0, np.zeros(HIDDEN)
    for i in range(iterations):
        if at + STEPS + 1 >= len(text):
            at, h = 0, np.zeros(HIDDEN)
        loss, gradients, h = loss_and_gradient(params, text[at : at + STEPS], text[at + 1 : at + STEPS + 1], h)
        smooth = 0.999 * smooth + 0.001 * loss
        for p, g, s in zip(params, gradients, squares, strict=True):
            np.clip(g, -5.0, 5.0, out=g)
            s += g * g
            p -= RATE * g / np.sqrt(s + 1e-8)
        if i % 100 == 0:
            print(f"iteration {i}, loss {smooth:.6f}")
        at += STEPS


def main() -> None:
    codes = np.array([ord(c) for c in Path(sys.argv[1]).read_text(encoding="utf-8")])
    alphabet, text = np.unique(codes, return_inverse=True)
    train(text, len(alphabet), int(sys.argv[2]))


if __name__ == "__main__":
    main()
