"""SqueezeNet and ResNet-50 in PyTorch, on the weights that the programs of `examples/` write: what both print.

pip install torch safetensors; python networks.py DPL > networks.json     (DPL: the command)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

ROOT = Path(__file__).parents[3]
SIZES = {"squeezenet": 63, "resnet50": 64}
Weights = dict[str, Tensor]


def pictures(size: int) -> Tensor:
    """Two pictures: image, channel, row, column."""
    b, c, i, j = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in (2, 3, size, size)), indexing="ij")
    return torch.sin(0.1 * (i + 1) * (c + 1) + 0.07 * j * (b + 1)).float()


def conv(p: Weights, name: str, x: Tensor, **more: int) -> Tensor:
    return F.conv2d(x, p[f"{name}.weights"].permute(3, 2, 0, 1), p.get(f"{name}.bias"), **more)


def squeezenet(p: Weights, x: Tensor) -> Tensor:
    x = F.relu(conv(p, "first", x, stride=2))
    for k in range(8):
        if k in (0, 2, 4):
            x = F.max_pool2d(x, 3, 2)
        x = F.relu(conv(p, f"fires.{k}.squeeze", x))
        both = [conv(p, f"fires.{k}.narrow", x), conv(p, f"fires.{k}.wide", x, padding=1)]
        x = F.relu(torch.cat(both, 1))
    return F.relu(conv(p, "last", x)).mean((2, 3))


def normed(p: Weights, name: str, x: Tensor, **more: int) -> Tensor:
    y = conv(p, name, x, **more)
    return F.batch_norm(y, None, None, p[f"{name}.scale"], p[f"{name}.offset"], training=True)


def resnet50(p: Weights, x: Tensor) -> Tensor:
    x = F.max_pool2d(F.relu(normed(p, "first", x, stride=2, padding=3)), 3, 2, 1)
    for k in range(16):
        name, step = f"blocks.{k}", 2 if k in (3, 7, 13) else 1
        beside = f"{name}.beside.Some"
        added = normed(p, beside, x, stride=step) if f"{beside}.weights" in p else x
        y = F.relu(normed(p, f"{name}.narrow", x))
        y = F.relu(normed(p, f"{name}.look", y, stride=step, padding=1))
        x = F.relu(normed(p, f"{name}.widen", y) + added)
    return x.mean((2, 3)) @ p["last.weights"] + p["last.bias"]


def printed(name: str, scores: Callable[[Weights, Tensor], Tensor]) -> list[float]:
    """Eight scores, the loss, and the loss after a step, as the program prints them."""
    size = SIZES[name]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "weights.safetensors")
        program = ROOT / "examples" / f"{name}.dp"
        subprocess.run([Path(sys.argv[1]), "run", program, str(size), weights, "write"], check=True, stdout=sys.stderr)
        p = {key: value.requires_grad_() for key, value in load_file(weights).items()}
    x, truth = pictures(size), torch.tensor([3, 7])
    found = scores(p, x)
    before = F.cross_entropy(found, truth)
    before.backward()
    stepped = {key: (value - 0.001 * value.grad).detach() for key, value in p.items() if value.grad is not None}
    after = F.cross_entropy(scores(stepped, x), truth)
    return [*found[0, :4].tolist(), *found[1, :4].tolist(), before.item(), after.item()]


if __name__ == "__main__":
    print(json.dumps({"squeezenet": printed("squeezenet", squeezenet), "resnet50": printed("resnet50", resnet50)}))
