"""Makes `systems.json` in this folder with the systems that modules are compared with:

    pip install numpy scipy torch jax numpyro; python systems.py

For each module: definitions in DPL, then [system, expression, the numbers that it should have].
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import jax
import numpy as np
import numpyro.distributions as nd
import torch
from numpyro.distributions import transforms as nt
from scipy import integrate, linalg, optimize, stats
from torch.nn import functional as F

jax.config.update("jax_enable_x64", True)
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(21)


def made(*sizes: int) -> np.ndarray:
    return rng.normal(size=sizes).round(3)


def dp(x: object) -> str:
    """Numbers as DPL writes them; negative ones in parentheses only where an argument begins."""
    x = np.asarray(x)
    if x.ndim == 0:
        return repr(x.item())
    return "[" + ", ".join(map(dp, x)) + "]"


def arg(x: object) -> str:
    text = dp(x)
    return f"({text})" if text.startswith("-") else text


def numbers(value: object) -> list[float]:
    if isinstance(value, tuple | list):
        return [x for part in value for x in numbers(part)]
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    return [float(x) for x in np.asarray(value, dtype=float).ravel()]


def slopes(f, *xs: np.ndarray) -> list[torch.Tensor]:
    """The gradients of the sum of squares of f."""
    leaves = [torch.tensor(x, requires_grad=True) for x in xs]
    (f(*leaves) ** 2).sum().backward()
    return [leaf.grad for leaf in leaves]  # type: ignore


# ---- networks ----


def images_of(x: torch.Tensor) -> torch.Tensor:
    """Ours have the channel last, PyTorch's have it second."""
    return x.permute(0, 3, 1, 2)


def ours(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def filters_of(w: torch.Tensor) -> torch.Tensor:
    return w.permute(3, 2, 0, 1)


def images() -> tuple[list[str], list]:
    x, w, wide, down = made(2, 6, 5, 4), made(3, 2, 4, 3), made(2, 2, 2, 6), made(3, 3, 3, 4)
    y, line, taps = made(2, 3, 4, 4), made(2, 7, 3), made(3, 3, 2)
    scale, offset = made(4), made(4)
    setup = [f"let x = {dp(x)}", f"let w = {dp(w)}", f"let wide = {dp(wide)}", f"let down = {dp(down)}",
             f"let y = {dp(y)}", f"let line = {dp(line)}", f"let taps = {dp(taps)}",
             f"let p = {{ Nn.scale = {dp(scale)}; offset = {dp(offset)} }}",
             "let at = { Nn.stride = (2, 1); padding = (1, 1); dilation = (1, 2); groups = 1 }",
             "let two = { Nn.plain with groups = 2 }",
             "let windows = { Nn.plain with stride = (2, 2); padding = (1, 1) }"]  # fmt: skip
    t = torch.tensor

    def conv(x, w):
        return ours(F.conv2d(images_of(x), filters_of(w), stride=(2, 1), padding=(1, 1), dilation=(1, 2)))

    def group(x, a, b):
        return ours(F.group_norm(images_of(x), 2, a, b))

    def transposed(y, w):
        return ours(F.conv_transpose2d(images_of(y), filters_of(w), stride=(2, 1), padding=(1, 1), dilation=(1, 2)))

    grouped = ours(F.conv2d(images_of(t(x)), filters_of(t(wide)), groups=2))
    pooled = ours(F.max_pool2d(images_of(t(x)), (3, 2), stride=2, padding=1))
    meaned = ours(F.avg_pool2d(images_of(t(x)), (3, 2), stride=2, padding=1))
    along = F.conv1d(t(line).permute(0, 2, 1), t(taps).permute(2, 1, 0), stride=1, padding=1).permute(0, 2, 1)
    squares = "sum (flatten (flatten (flatten ({}) ** 2)))"
    return setup, [
        ["Nn.conv2d at w x", conv(t(x), t(w))],
        ["Nn.conv2d two wide x", grouped],
        [f"grad (fun (x, w) -> {squares.format('Nn.conv2d at w x')}) (x, w)", slopes(conv, x, w)],
        ["Nn.conv2d_transpose at down y", transposed(t(y), t(down))],
        [f"grad (fun (y, w) -> {squares.format('Nn.conv2d_transpose at w y')}) (y, down)",
         slopes(transposed, y, down)],
        ["Nn.conv1d (Nn.padded 1 1) taps line", along],
        ["Nn.max_pool windows (3, 2) x", pooled],
        ["Nn.mean_pool windows (3, 2) x", meaned],
        ["Nn.max_pool2d (2, 2) x", ours(F.max_pool2d(images_of(t(x)), 2))],
        ["Nn.mean_pool2d (2, 2) x", ours(F.avg_pool2d(images_of(t(x)), 2))],
        ["Nn.group_norm p 2 x", group(t(x), t(scale), t(offset))],
        [f"let (x, p) = grad (fun (x, p) -> {squares.format('Nn.group_norm p 2 x')}) (x, p) in (x, p.scale, p.offset)",
         slopes(group, x, scale, offset)],
    ]  # fmt: skip


def cells() -> tuple[list[str], list]:
    xs = made(4, 3)
    net = {kind: getattr(torch.nn, kind)(3, 2) for kind in ("RNN", "LSTM", "GRU")}
    setup = [f"let xs = {dp(xs)}"]
    values = []
    for kind, layer in net.items():
        w, u, b, c = (p.detach().numpy().round(3) for p in layer.parameters())
        for p, value in zip(layer.parameters(), (w, u, b, c if kind == "GRU" else 0 * c), strict=True):
            p.data = torch.tensor(value)
        candidate = c[4:] if kind == "GRU" else None
        if candidate is not None:
            list(layer.parameters())[3].data[:4] = 0
        cell = f"{{ Nn.input = {dp(w.T)}; state = {dp(u.T)}; bias = {dp(b)} }}"
        gru = f"{{ Nn.gates = {cell}; inner = {dp(candidate)} }}"
        setup.append(f"let {kind.lower()} = {gru if kind == 'GRU' else cell}")
        states = layer(torch.tensor(xs)[:, None])[0][:, 0]
        start = "(zeros 2, zeros 2)" if kind == "LSTM" else "(zeros 2)"
        call = f"Array.scan_left (Nn.{kind.lower()}_step {kind.lower()}) {start} xs"
        states_only = f"[for (h, _) in {call} -> h]" if kind == "LSTM" else call
        values.append([states_only, states])
        (states**2).sum().backward()
        gw, gu, gb, gc = (p.grad for p in layer.parameters())
        parts = "[for row in transpose c{0}.input -> row], [for row in transpose c{0}.state -> row], c{0}.bias"
        parts = parts.format(".gates" if kind == "GRU" else "")
        loss = f"sum (flatten ({states_only} ** 2))".replace(f"_step {kind.lower()})", "_step c)")
        inner = ", c.inner" if kind == "GRU" else ""
        values.append(
            [
                f"let c = grad (fun c -> {loss}) {kind.lower()} in ({parts}{inner})",
                [gw, gu, gb, *([gc[4:]] if kind == "GRU" else [])],
            ]
        )  # type: ignore
    # a tree of two leaves, by the formulas of Tai et al. in PyTorch
    w, u, v, b = made(3, 10), made(2, 10), made(2, 10), made(10)
    setup += [f"let tree = {{ Nn.left = {{ Nn.input = {dp(w)}; state = {dp(u)}; bias = {dp(b)} }}; right = {dp(v)} }}",
              "let nothing = ([0.0, 0.0], [0.0, 0.0])",
              "let leaf t x = Nn.tree_lstm_step t nothing nothing x",
              "let root t = fst (Nn.tree_lstm_step t (leaf t xs[0]) (leaf t xs[1]) xs[2])"]  # fmt: skip

    def step(w, u, v, b, left, right, x):
        z = x @ w + left[0] @ u + right[0] @ v + b
        i, f, g, c, o = (z[2 * k : 2 * k + 2] for k in range(5))
        m = i.sigmoid() * c.tanh() + f.sigmoid() * left[1] + g.sigmoid() * right[1]
        return o.sigmoid() * m.tanh(), m

    def root(w, u, v, b):
        none = (torch.zeros(2), torch.zeros(2))
        a, c, d = torch.tensor(xs[:3])
        leaves = [step(w, u, v, b, none, none, x) for x in (a, c)]
        return step(w, u, v, b, *leaves, d)[0]

    values += [["root tree", root(*map(torch.tensor, (w, u, v, b)))],
               ["let t = grad (fun t -> sum (root t ** 2)) tree in (t.left.input, t.left.state, t.right, t.left.bias)",
                slopes(root, w, u, v, b)]]  # fmt: skip
    return setup, values


def layers() -> tuple[list[str], list]:
    x, y, table, truth = made(5), made(5), made(4, 5), rng.integers(0, 2, 5).astype(float)
    scale, offset, labels = made(5), made(5), [0, 4, 2, 2]
    p, q = (np.asarray(v) for v in ([0.2, 0.5, 0.3], [0.4, 0.4, 0.2]))
    sounds, heads = made(6, 4), {name: made(4, 4) for name in ("query", "key", "value", "output")}
    setup = [f"let x = {dp(x)}", f"let y = {dp(y)}", f"let table = {dp(table)}", f"let truth = {dp(truth)}",
             f"let p = {{ Nn.scale = {dp(scale)}; offset = {dp(offset)} }}", f"let sounds = {dp(sounds)}",
             "let spoken = fun x -> Nn.ctc [for row in x -> log_softmax row] [1, 1, 3]",
             f"let a = {{ Nn.query = {dp(heads['query'])}; key = {dp(heads['key'])}; value = {dp(heads['value'])};"
             f" output = {dp(heads['output'])} }}"]  # fmt: skip
    t = torch.tensor
    tx = t(x)

    def spoken(s):
        return F.ctc_loss(s.log_softmax(1), t([[1, 1, 3]]), t([6]), t([3]), reduction="sum")

    def attention(s):
        one = torch.nn.MultiheadAttention(4, 2, bias=False)
        one.in_proj_weight.data = t(np.concatenate([heads[k].T for k in ("query", "key", "value")]))
        one.out_proj.weight.data = t(heads["output"].T)
        return one(s, s, s, attn_mask=torch.ones(6, 6).triu(1).bool(), need_weights=False)[0]

    attended = "Nn.self_attention a 2 (fun i j -> j <= i) sounds"
    return setup, [
        ["Nn.gelu x", F.gelu(tx)], ["Nn.silu x", F.silu(tx)], ["Nn.elu x", F.elu(tx)],
        ["Nn.leaky_relu 0.1 x", F.leaky_relu(tx, 0.1)], ["Nn.mish x", F.mish(tx)],
        ["Nn.softsign x", F.softsign(tx)],
        ["Nn.cross_entropy table [0, 4, 2, 2]", F.cross_entropy(t(table), t(labels))],
        ["Nn.bce x truth", F.binary_cross_entropy_with_logits(tx, t(truth))],
        ["Nn.mse x y", F.mse_loss(tx, t(y))], ["Nn.mae x y", F.l1_loss(tx, t(y))],
        ["Nn.huber 0.7 x y", F.huber_loss(tx, t(y), delta=0.7)],
        [f"Nn.kl {dp(p)} {dp(q)}", F.kl_div(t(q).log(), t(p), reduction="sum")],
        ["spoken sounds", spoken(t(sounds))],
        ["grad (fun s -> spoken s ** 2) sounds", slopes(spoken, sounds)],
        ["Nn.layer_norm p x", F.layer_norm(tx, (5,), t(scale), t(offset))],
        ["Nn.rms_norm p.scale x", F.rms_norm(tx, (5,), t(scale), eps=1e-6)],
        ["fst (Nn.batch_norm p table)", F.batch_norm(t(table), None, None, t(scale), t(offset), training=True)],
        [attended, attention(t(sounds))],
        [f"grad (fun sounds -> sum (flatten ({attended} ** 2))) sounds", slopes(attention, sounds)],
    ]  # fmt: skip


# ---- the others ----


def optimisers() -> tuple[list[str], list]:
    start = torch.tensor([-1.2, 1.0])
    kinds = {
        "sgd 0.001": lambda p: torch.optim.SGD(p, 0.001),
        "momentum 0.001 0.9": lambda p: torch.optim.SGD(p, 0.001, momentum=0.9),
        "nesterov 0.001 0.9": lambda p: torch.optim.SGD(p, 0.001, momentum=0.9, nesterov=True),
        "rmsprop 0.01 0.9": lambda p: torch.optim.RMSprop(p, 0.01, alpha=0.9),
        "adam 0.05": lambda p: torch.optim.Adam(p, 0.05),
        "adamw 0.05 0.1": lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1),
    }

    def rosen(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    found = []
    for name, kind in kinds.items():
        x = start.clone().requires_grad_()
        method = kind([x])
        for _ in range(20):
            method.zero_grad()
            rosen(x).backward()
            method.step()
        found.append(["PyTorch", f"Optim.minimize (Optim.{name}) rosen [-1.2, 1.0] 20", x])
    best = optimize.minimize(
        optimize.rosen, [-1.2, 1.0], method="BFGS", jac=optimize.rosen_der, options={"gtol": 1e-10}
    )
    setup = ["let rosen x = (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2",
             "let goal = { Optim.usual with tolerance = 1e-9 }",
             "let residuals x = [1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)]"]  # fmt: skip
    for name in ("lbfgs", "cg", "newton_cg", "newton"):
        found.append(["SciPy", f"(Optim.{name} goal rosen [-1.2, 1.0]).params", best.x])
    least = optimize.least_squares(lambda x: [1 - x[0], 10 * (x[1] - x[0] ** 2)], [-1.2, 1.0], xtol=1e-15, method="lm")
    for name in ("levenberg_marquardt", "gauss_newton"):
        found.append(["SciPy", f"(Optim.{name} goal residuals [-1.2, 1.0]).params", least.x])
    return setup, found


def vectors() -> tuple[list[str], list]:
    shares, weights = [0.2, 0.5, 0.3], [1.5, 0.7, 3.0]
    a, mean, x = np.tril(made(3, 3)), made(3), made(3)
    np.fill_diagonal(a, np.abs(np.diag(a)) + 0.5)
    b = a + 0.3 * np.eye(3)
    factor = np.linalg.cholesky([[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]])
    td = torch.distributions

    def normal(mean, factor):
        return td.MultivariateNormal(torch.tensor(mean), scale_tril=torch.tensor(factor))

    setup = [f"let a = {dp(a)}", f"let b = {dp(b)}", f"let mean = {dp(mean)}", f"let x = {dp(x)}",
             f"let factor = {dp(factor)}"]  # fmt: skip
    found = [
        ["NumPyro", f"Dist.dirichlet_logpdf {dp(weights)} {dp(shares)}",
         nd.Dirichlet(np.array(weights)).log_prob(np.array(shares))],
        ["NumPyro", "Dist.mv_normal_logpdf mean a x", nd.MultivariateNormal(mean, scale_tril=a).log_prob(x)],
        ["NumPyro", "Dist.lkj_logpdf 1.7 factor", nd.LKJCholesky(3, 1.7).log_prob(factor)],
        ["PyTorch", "Dist.mv_normal_entropy a", normal(mean, a).entropy()],
        ["PyTorch", "Dist.mv_normal_kl (mean, a) (x, b)", td.kl_divergence(normal(mean, a), normal(x, b))],
    ]  # fmt: skip
    weights, others = np.array(weights), np.array([2.0, 1.0, 0.5])
    dirichlet, other = td.Dirichlet(torch.tensor(weights)), td.Dirichlet(torch.tensor(others))
    found += [
        ["PyTorch", f"Dist.dirichlet_mean {dp(weights)}", dirichlet.mean],
        ["PyTorch", f"Dist.dirichlet_variance {dp(weights)}", dirichlet.variance],
        ["PyTorch", f"Dist.dirichlet_entropy {dp(weights)}", dirichlet.entropy()],
        ["PyTorch", f"Dist.dirichlet_kl {dp(weights)} {dp(others)}", td.kl_divergence(dirichlet, other)],
    ]
    t = torch.tensor
    pairs = {
        "Normal": (td.Normal, (0.3, 1.2), (1.0, 0.7)), "Lognormal": (td.LogNormal, (0.3, 1.2), (1.0, 0.7)),
        "Gamma": (td.Gamma, (2.3, 1.2), (1.4, 0.7)), "Inverse_gamma": (td.InverseGamma, (2.3, 1.2), (1.4, 0.7)),
        "Beta": (td.Beta, (2.3, 1.2), (1.4, 0.7)), "Laplace": (td.Laplace, (0.3, 1.2), (1.0, 0.7)),
        "Cauchy": (td.Cauchy, (0.3, 1.2), (1.0, 0.7)), "Uniform": (td.Uniform, (0.3, 0.6), (0.0, 0.7)),
        "Exponential": (td.Exponential, (1.2,), (0.7,)), "Half_normal": (td.HalfNormal, (1.2,), (0.7,)),
    }  # fmt: skip

    def kl(kind, p, q):
        if kind is td.InverseGamma:  # of the reciprocals
            kind = td.Gamma
        if kind is td.HalfNormal:  # half of a normal one has the same
            kind, p, q = td.Normal, (0.0, *p), (0.0, *q)
        return td.kl_divergence(kind(*map(t, p)), kind(*map(t, q)))

    for name, (kind, p, q) in pairs.items():
        found.append(["PyTorch", f"Dist.kl (Dist.{name} {p if p[1:] else p[0]}) (Dist.{name} {q if q[1:] else q[0]})",
                      kl(kind, p, q)])  # fmt: skip
    whole = {"Binomial (7, 0.3)": stats.binom(7, 0.3), "Poisson 2.3": stats.poisson(2.3),
             "Negative_binomial (2.5, 0.3)": stats.nbinom(2.5, 0.3), "Geometric 0.3": stats.geom(0.3, loc=-1),
             "Bernoulli 0.3": stats.bernoulli(0.3)}  # fmt: skip
    for name, d in whole.items():
        quantiles = [float(d.ppf(q)) for q in (0.05, 0.5, 0.99)]
        found.append(["SciPy", f"[for q in [0.05, 0.5, 0.99] -> Dist.quantile_discrete (Dist.{name}) q]", quantiles])
        found.append(["SciPy", f"Dist.entropy_discrete (Dist.{name})", d.entropy()])
    n = np.arange(200)
    p, q = stats.poisson(2.3).pmf(n), stats.nbinom(2.5, 0.3).logpmf(n)
    gap = float(np.sum(p[p > 0] * (stats.poisson(2.3).logpmf(n)[p > 0] - q[p > 0])))
    found.append(["SciPy", "Dist.kl_discrete (Dist.Poisson 2.3) (Dist.Negative_binomial (2.5, 0.3))", gap])
    return setup, found


def transforms() -> tuple[list[str], list]:
    found = []
    cases = {
        "positive": (nt.ExpTransform(), 0.7), "between (-1.0) 2.5": (nt.SigmoidTransform(), 0.7),
        "ordered": (nt.OrderedTransform(), made(4)), "shares": (nt.StickBreakingTransform(), made(4)),
        "correlation 4": (nt.CorrCholeskyTransform(), made(6)),
    }  # fmt: skip
    for name, (transform, x) in cases.items():
        y = transform(x)
        jacobian = transform.log_abs_det_jacobian(x, y)
        if name.startswith("between"):
            y, jacobian = 3.5 * y - 1.0, jacobian + math.log(3.5)
        found.append(["NumPyro", f"Transform.{name} {arg(x)}", [np.asarray(y), np.asarray(jacobian)]])
        words = name.split(" ", 1)
        inverse = words[0] + "_inverse" + (" " + words[1] if words[0] == "between" else "")
        found.append(["NumPyro", f"Transform.{inverse} (fst (Transform.{name} {arg(x)}))", x])
    return [], found


def equations() -> tuple[list[str], list]:
    def exact(f, times, y, method="DOP853"):
        return integrate.solve_ivp(f, (0, times[-1]), y, t_eval=times, method=method, rtol=3e-14, atol=1e-14).y.T

    times = [0.5, 2.0, 7.0]
    hunt = exact(lambda t, y: [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3 * y[1]], times, [1.0, 0.7])
    swing = exact(lambda t, y: [y[1], -np.sin(y[0]) + 0.1 * np.cos(t)], times, [1.0, 0.0])
    stiff = exact(lambda t, y: [y[1], 30 * (1 - y[0] ** 2) * y[1] - y[0]], [0.5, 1.0], [2.0, 0.0], "Radau")
    mixing = exact(lambda t, y: [-0.04 * y[0] + 1e4 * y[1] * y[2], 0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
                                 3e7 * y[1] ** 2], [40.0], [1.0, 0.0, 0.0], "Radau")  # fmt: skip
    setup = ["let hunt _ (x, y) = (1.5 * x - x * y, x * y - 3.0 * y)",
             "let swing t y = [y[1], 0.1 * cos t - sin y[0]]",
             "let stiff _ y = [y[1], 30.0 * (1.0 - y[0] ** 2) * y[1] - y[0]]",
             "let robertson _ y =",
             "  let (a, b) = (0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]) in [0.0 - a, a - b, b]",
             "let want = { Ode.usual with relative = 1e-11; absolute = 1e-11 }",
             "let loose = { Ode.usual with relative = 1e-6; absolute = 1e-6 }"]  # fmt: skip
    found = []
    for k, t in enumerate(times):
        found += [["SciPy", f"Ode.{method} want hunt 0.0 {t} (1.0, 0.7)", hunt[k]] for method in ("dopri5", "tsit5")]
        found += [["SciPy", f"Ode.dense want swing 0.0 7.5 [1.0, 0.0] {t}", swing[k]]]
    found += [["SciPy", f"Ode.states want swing 0.0 {dp(times)} [1.0, 0.0]", swing]]
    found += [["SciPy", "Ode.rk4 hunt 2000 0.0 2.0 (1.0, 0.7)", hunt[1]]]
    found += [["SciPy, to 1e-6 a step", "Ode.rosenbrock23 loose stiff 0.0 1.0 [2.0, 0.0]", stiff[1]]]
    found += [["SciPy, Radau", "Ode.kvaerno5 want stiff 0.0 1.0 [2.0, 0.0]", stiff[1]]]
    found += [["SciPy, Radau", "Ode.kvaerno5 want robertson 0.0 40.0 [1.0, 0.0, 0.0]", mixing[0]]]
    return setup, found


def matrices() -> tuple[list[str], list]:
    a, b, tall, c = made(4, 4), made(4), made(5, 3), made(2, 3)
    low = made(4, 2) @ made(2, 5)
    setup = [f"let a = {dp(a)}", f"let b = {dp(b)}", f"let tall = {dp(tall)}", f"let c = {dp(c)}",
             f"let low = {dp(low.round(6))}"]  # fmt: skip
    low = low.round(6)
    spd = a @ a.T + np.eye(4)
    found = [
        ["Linalg.solve a b", np.linalg.solve(a, b)], ["Linalg.inverse a", np.linalg.inv(a)],
        ["Linalg.det a", np.linalg.det(a)], ["Linalg.expm a", linalg.expm(a)],
        ["Linalg.cholesky (a @ transpose a + Linalg.identity 4)", np.linalg.cholesky(spd)],
        ["fst (Linalg.eigh (a @ transpose a))", np.linalg.eigvalsh(a @ a.T)],
        ["Linalg.lstsq tall (tall @ [1.0, 2.0, 3.0] + [1.0, 0.0, 0.0, 0.0, 2.0])",
         np.linalg.lstsq(tall, tall @ [1, 2, 3] + [1, 0, 0, 0, 2])[0]],
        ["Linalg.kron tall c", np.kron(tall, c)], ["Linalg.pinv tall", np.linalg.pinv(tall)],
        ["Linalg.pinv c", np.linalg.pinv(c)], ["Linalg.cond tall", np.linalg.cond(tall)],
        ["(Linalg.rank tall, Linalg.rank [[1.0, 2.0], [2.0, 4.0]])", [np.linalg.matrix_rank(tall), 1]],
        ["Linalg.singular_values c", np.linalg.svd(c, compute_uv=False)],
        ["(Linalg.norm1 c, Linalg.norm_inf c, Linalg.norm2 c)", [np.linalg.norm(c, k) for k in (1, np.inf, 2)]],
        ["(Linalg.norm_frobenius c, Linalg.norm_nuclear c)", [np.linalg.norm(c, k) for k in ("fro", "nuc")]],
    ]  # fmt: skip
    return setup[:-1], [["NumPy, SciPy", *case] for case in found]


def integrals() -> tuple[list[str], list]:
    cases = {
        "fun x -> exp (0.0 - x * x) * cos (3.0 * x)": (lambda x: np.exp(-x * x) * np.cos(3 * x), -1.0, 2.5),
        "fun x -> log x / (1.0 + x)": (lambda x: np.log(x) / (1 + x), 0.0, 1.0),
        "fun x -> 1.0 / (1.0 + x ** 4)": (lambda x: 1 / (1 + x**4), 0.0, np.inf),
    }
    return [], [
        ["SciPy", f"Quad.integrate ({name}) {arg(low)} {'(1.0 / 0.0)' if high == np.inf else high}",
         integrate.quad(f, low, high, epsabs=1e-14, epsrel=1e-13)[0]]
        for name, (f, low, high) in cases.items()
    ]  # fmt: skip


def roots() -> tuple[list[str], list]:
    both = optimize.root(lambda x: [x[0] ** 2 + x[1] ** 2 - 1.3, x[0] - 2 * x[1] ** 3], [1.0, 0.4], tol=1e-14).x
    still = optimize.fixed_point(lambda x: np.array([np.cos(0.5 * x[1]), 0.5 * np.sin(x[0])]), [1.0, 0.4], xtol=1e-14)
    least = optimize.minimize(lambda x: (x[0] - 1) ** 2 + x[0] ** 4 + (x[1] - x[0]) ** 2, [0.5, 0.5], tol=1e-14).x
    return [], [
        ["SciPy", "Root.solve (fun a x -> [x[0] ** 2 + x[1] ** 2 - a, x[0] - 2.0 * x[1] ** 3]) [1.0, 0.4] 1.3", both],
        ["SciPy", "Root.fixpoint (fun a x -> [cos (a * x[1]), a * sin x[0]]) [1.0, 0.4] 0.5", still],
        ["SciPy, whose search ends at 1e-8",
         "Root.argmin (fun a x -> (x[0] - a) ** 2 + x[0] ** 4 + (x[1] - x[0]) ** 2) [0.5, 0.5] 1.0", least],
    ]  # fmt: skip


MODULES = {
    "Nn: images": images, "Nn: cells": cells, "Nn: layers and losses": layers, "Optim": optimisers, "Dist": vectors,
    "Transform": transforms, "Ode": equations, "Linalg": matrices, "Quad": integrals, "Root": roots,
}  # fmt: skip

if __name__ == "__main__":
    torch.manual_seed(1)  # of the cells' weights: the file is the same each time
    lines = []
    for module, make in MODULES.items():
        setup, cases = make()
        cases = [["PyTorch", *case] if module.startswith("Nn") else case for case in cases]
        rows = ",\n  ".join(json.dumps([system, call, numbers(value)]) for system, call, value in cases)
        lines.append(f"{json.dumps([module, setup])[:-1]},\n [{rows}]]")
    (Path(__file__).parent / "systems.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
