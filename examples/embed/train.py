"""Trains the network of curve.dp from Python, with NumPy's arrays:  python examples/embed/train.py"""

from pathlib import Path

import dpl
import numpy as np

curve = dpl.load(Path(__file__).with_name("curve.dp"))

x = np.linspace(-1.0, 1.0, 64)
xs = np.stack([x, np.ones_like(x)], axis=1)
ys = np.sin(3.0 * x)

net = curve.start(2, 16, seed=7)
for i in range(2000):
    loss, net = curve.step(0.1, net, xs, ys)
    if i % 400 == 0:
        print(f"step {i:4d}  loss {loss:.5f}")
print(f"sin(3 * {x[16]:.3f}) = {ys[16]:.3f}, learnt: {curve.predict(net, xs[16]):.3f}")

# Any exported function can be differentiated by any of its arguments.
slope = curve.grad("predict", "x")(net, xs[32])[0]
print(f"slope of sin(3 x) at {x[32]:.3f}: {3 * np.cos(3 * x[32]):.3f}, learnt: {slope:.3f}")

# Sizes and types are checked, with DPL's own messages.
try:
    curve.loss(net, xs, ys[:10])
except dpl.Error as error:
    print(str(error).split("\n")[0])
