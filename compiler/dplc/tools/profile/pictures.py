"""Stacks of samples as files for Chrome's tracing, Perfetto and speedscope."""

from __future__ import annotations

import json
from collections.abc import Sequence

Stacks = Sequence[Sequence[str]]


def chrome(stacks: Stacks, interval: float) -> str:
    """The run as nested spans, for chrome://tracing and ui.perfetto.dev.  Neighbouring samples are one span as far as
    their callers agree."""
    events: list[dict] = []
    running: list[tuple[str, int]] = []  # name and first sample, outermost first
    for n, stack in enumerate([*stacks, ()]):
        same = next((i for i, (name, _) in enumerate(running) if i >= len(stack) or stack[i] != name), len(running))
        for name, start in running[same:]:
            span = {"ts": start * interval * 1e6, "dur": (n - start) * interval * 1e6}
            events.append({"name": name, "ph": "X", "pid": 1, "tid": 1, **span})
        running[same:] = [(name, n) for name in stack[same:]]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, ensure_ascii=False)


def speedscope(stacks: Stacks, weights: Sequence[float], unit: str) -> str:
    """The samples for speedscope.app; `unit` is that of the weights: seconds or bytes."""
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(name, len(numbers)) for name in stack] for stack in stacks]
    return json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [{
            "type": "sampled", "name": "dpl", "unit": unit, "startValue": 0,
            "endValue": sum(weights), "samples": samples, "weights": weights,
        }],
    }, ensure_ascii=False)  # fmt: skip
