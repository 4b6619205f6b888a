"""The programs of this folder in JAX, as one would write them there.

    python benchmarks/gpu/beside_jax.py NAME MODE SIZE ROUNDS       prints the least milliseconds of a repetition

It fails if JAX is missing, finds no GPU, or cannot do a program: recursion over trees, or the gradient of a loop whose
number of steps depends on data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def programs(jax, np) -> dict[tuple[str, str], Callable[[int], tuple[Callable, tuple]]]:  # noqa: C901, PLR0915
    """For each program and mode: from the size, a function and its arguments."""

    def price(option):
        s, k, t, r, v = option
        deviation = v * np.sqrt(t)
        d = (np.log(s / k) + (r + 0.5 * v * v) * t) / deviation
        cdf = lambda x: 0.5 * (1.0 + jax.scipy.special.erf(x / np.sqrt(2.0)))  # noqa: E731
        return s * cdf(d) - k * np.exp(-r * t) * cdf(d - deviation)

    def options(n: int):
        spread = lambda seed, lo, hi: lo + (hi - lo) * ((np.arange(n) + seed) * 0.6180339887498949 % 1.0)  # noqa: E731
        return (spread(0, 10.0, 50.0), spread(7, 10.0, 50.0), spread(3, 0.2, 2.0), 0.02, 0.3)

    def total(option):
        return np.sum(price(option))

    def energy(r):
        d = r[None, :, :] - r[:, None, :]
        q = np.sum(d * d, axis=2) + 0.01
        a = np.sum(d / (q * np.sqrt(q))[:, :, None], axis=1)
        return np.sum(a * a)

    def bodies(n: int):
        t = np.arange(n)
        return (np.stack([np.sin(1.1 * t), np.cos(1.7 * t), np.sin(0.3 * t + 1.0)], axis=1),)

    def points(n: int):
        t = np.arange(n)
        return np.stack([np.sin(t), np.cos(1.3 * t), np.sin(0.7 * t), np.cos(0.2 * t)], axis=1)

    def cost(cs, xs):
        return np.sum(np.min(np.sum((xs[:, None, :] - cs[None, :, :]) ** 2, axis=2), axis=1))

    def lloyd(cs, xs):
        at = np.argmin(np.sum((xs[:, None, :] - cs[None, :, :]) ** 2, axis=2), axis=1)
        sums, counts = np.zeros_like(cs).at[at].add(xs), np.zeros(len(cs)).at[at].add(1.0)
        return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], cs)

    def centres(n: int):
        return points(16 * 37)[::37], points(n)

    def flight(v0):
        def on(state):
            return (state[1] >= 0.0) & (state[5] < 1000)

        def step(state):
            x, y, vx, vy, dt, count = state
            s = np.sqrt(vx * vx + vy * vy)
            ax, ay = -0.01 * s * vx, -9.81 - 0.01 * s * vy
            hx, hy = vx + 0.5 * dt * ax, vy + 0.5 * dt * ay
            h = np.sqrt(hx * hx + hy * hy)
            bx, by = -0.01 * h * hx, -9.81 - 0.01 * h * hy
            error = np.abs(ax - bx) + np.abs(ay - by)
            after = np.where(error > 1.0, dt * 0.5, np.where(error < 0.1, np.minimum(0.1, dt * 1.5), dt))
            return x + dt * hx, y + dt * hy, vx + dt * bx, vy + dt * by, after, count + 1

        return jax.lax.while_loop(on, step, (0.0, 0.0, v0, v0, 0.01, 0))[0]

    def speeds(n: int):
        return (1.0 + 50.0 * (np.arange(n) * 7919 % n) / n,)

    def logits(p, xs):
        return np.tanh(xs @ p[0] + p[1]) @ p[2] + p[3]

    def loss(p, xs, ys):
        return -np.mean(np.take_along_axis(jax.nn.log_softmax(logits(p, xs)), ys[:, None], axis=1))

    def train(p, xs, ys):
        for _ in range(10):
            p = [a - 0.1 * d for a, d in zip(p, jax.grad(loss)(p, xs, ys), strict=True)]
        return loss(p, xs, ys)

    def batch(n: int):
        wave = lambda a, *shape: 0.05 * np.sin(a * np.arange(shape[0] * shape[1])).reshape(shape)  # noqa: E731
        p = [wave(1.3, 784, 256), np.zeros(256), wave(0.7, 256, 10), np.zeros(10)]
        return p, np.sin(np.arange(784.0 * n)).reshape(n, 784), np.arange(n) % 10

    def likelihood(p, xs):
        weights, means, q, lower = p
        dx = xs[:, None, :] - means
        y = np.exp(q) * dx + np.einsum("krc,nkc->nkr", lower, dx)
        scores = weights + np.sum(q, axis=1) - 0.5 * np.sum(y * y, axis=2)
        total = jax.scipy.special.logsumexp
        return np.sum(total(scores, axis=1)) - len(xs) * total(weights)

    def mixture(n: int):
        at = lambda a, *shape: np.sin(a * (np.arange(np.prod(np.array(shape))) + 1.0)).reshape(shape)  # noqa: E731
        rows = lambda first: np.sin((np.arange(5.0) + first)[:, None] * (np.arange(8) + 1))  # noqa: E731
        places = np.arange(5.0)[:, None, None] + 8 * np.arange(8)[:, None] + np.arange(8)
        p = (at(0.3, 5), rows(2), 0.1 * rows(3), 0.1 * np.tril(np.sin(places), -1))
        return p, 2.0 * np.sin(np.arange(8.0 * n)).reshape(n, 8)

    def images(p, xs):
        k, b, w, c = p
        y = jax.lax.conv_general_dilated(xs[:, None], k[:, None], (1, 1), "VALID") + b[:, None, None]
        y = jax.nn.relu(y).reshape(len(xs), 8, 12, 2, 12, 2).max(axis=(3, 5))
        scores = jax.nn.log_softmax(y.reshape(len(xs), 1152) @ w + c)
        return -np.mean(np.take_along_axis(scores, (np.arange(len(xs)) % 10)[:, None], axis=1))

    def network(n: int):
        at = lambda a, *shape: 0.1 * np.sin(a * np.arange(np.prod(np.array(shape)))).reshape(shape)  # noqa: E731
        p = (at(1.3, 8, 5, 5), np.zeros(8), at(0.7, 1152, 10), np.zeros(10))
        return p, 10.0 * at(1.0, n, 28, 28)

    def surprise(p, texts):
        wx, wh, wy, bh, by = p

        def step(h, pair):
            now, after = pair
            h = np.tanh(wx.T[now] + h @ wh.T + bh)
            return h, np.take_along_axis(jax.nn.log_softmax(h @ wy.T + by), after[:, None], axis=1)

        _, told = jax.lax.scan(step, np.zeros((len(texts), 50)), (texts.T[:-1], texts.T[1:]))
        return -np.sum(told) / len(texts)

    def characters(n: int):
        at = lambda a, *shape: 0.1 * np.sin(a * np.arange(np.prod(np.array(shape)))).reshape(shape)  # noqa: E731
        p = (at(1.3, 50, 27), at(0.7, 50, 50), at(0.9, 27, 50), np.zeros(50), np.zeros(27))
        return p, (np.arange(n)[:, None] ** 2 + 3 * np.arange(21)[None, :] ** 2) % 27

    return {
        ("gmm", "gradient"): lambda n: (jax.grad(likelihood), mixture(n)),
        ("lenet", "gradient"): lambda n: (jax.grad(images), network(n)),
        ("char_rnn", "gradient"): lambda n: (jax.grad(surprise), characters(n)),
        ("stream", "function"): lambda n: (lambda xs: 2.0 * xs + 1.0, (np.arange(n) % 1000.0,)),
        ("product", "function"): lambda n: (lambda a, b: a @ b, (np.sin(np.arange(1.0 * n * n)).reshape(n, n),) * 2),
        ("black_scholes", "function"): lambda n: (total, (options(n),)),
        ("black_scholes", "gradient"): lambda n: (jax.grad(total), (options(n),)),
        ("nbody", "gradient"): lambda n: (jax.grad(energy), bodies(n)),
        ("kmeans", "function"): lambda n: (lloyd, centres(n)),
        ("kmeans", "gradient"): lambda n: (jax.grad(cost), centres(n)),
        ("ensemble", "function"): lambda n: (lambda v: np.mean(jax.vmap(flight)(v)), speeds(n)),
        ("mlp", "gradient"): lambda n: (train, batch(n)),
    }


def main(name: str, mode: str, size: str, rounds: str) -> str:
    """Prints the milliseconds; why there are none."""
    try:
        import jax
        import jax.numpy as np
    except ImportError:
        return "it is not installed"
    jax.config.update("jax_enable_x64", True)
    known = programs(jax, np)
    if (name, mode) not in known:
        return "it has no such program"
    if jax.default_backend() != "gpu":
        return "it finds no GPU"
    function, arguments = known[name, mode](int(size))
    compiled, times = jax.jit(function), []
    for _ in range(int(rounds) + 1):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - start)
    print(1e3 * min(times[1:]))
    return ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
