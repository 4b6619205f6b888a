"""Makes the reference values in this folder with SciPy:  pip install scipy; python make.py"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import fft, integrate, interpolate, optimize, sparse, special, stats

HERE = Path(__file__).parent


def special_functions() -> list:
    """[function, arguments, value]: an integer argument is an order."""
    rng = np.random.default_rng(1)
    wide = [float(x) for x in np.round(np.concatenate([rng.uniform(0.05, 3, 6), rng.uniform(3, 30, 6)]), 4)]
    ones = {
        "gamma": (special.gamma, [*wide, -0.5, -3.7, 1e-6, 100.5, 170.6]),
        "digamma": (special.digamma, [*wide, -0.5, -3.7]),
        "erfc": (special.erfc, [-2.0, *wide]),
        "erfcx": (special.erfcx, [-2.0, *wide, 1e3]),
        "erfcinv": (special.erfcinv, [1e-300, 1e-30, 1e-5, 0.2, 0.7, 1.3, 1.9, 1.99999]),
        "erfinv": (special.erfinv, [-0.999, -0.4, 1e-9, 0.1, 0.5, 0.51, 0.99]),
        "factorial": (lambda x: special.gamma(x + 1), [0.0, 3.0, 20.0, 0.5]),
    }  # fmt: skip
    twos = {
        "lbeta": special.betaln, "beta": special.beta, "gammainc": special.gammainc, "gammaincc": special.gammaincc,
    }  # fmt: skip
    found = [[name, [x], float(fn(x))] for name, (fn, xs) in ones.items() for x in xs]
    found += [[name, [a, b], float(fn(a, b))] for name, fn in twos.items() for a, b in zip(wide, reversed(wide))]
    found += [
        ["betainc", [a, b, x], float(special.betainc(a, b, x))] for a, b, x in rng.uniform(0.1, 1, (12, 3)) * [9, 9, 1]
    ]
    found += [["binomial", [n, k], float(special.binom(n, k))] for n, k in ((5.0, 2.0), (60.0, 30.0), (10.5, 3.0))]
    for name, fn in (("bessel_j", special.jv), ("bessel_i", special.iv), ("bessel_k", special.kv)):
        found += [[name, [n, x], float(fn(n, x))] for n in (0, 1, 4) for x in (1e-3, 0.8, *wide[4:10])]
    places = (1e-3, 0.8, 1.99, *wide[4:10], 24.9, 25.1, 300.0)
    found += [["bessel_y", [n, x], float(special.yn(n, x))] for n in (0, 1, 4, -3) for x in places]
    found += [["polygamma", [n, x], float(special.polygamma(n, x))] for n in (1, 2, 3) for x in wide[:6]]
    return found


def zeros() -> list:
    """[function, ends, its zero by Brent's method, how often that calls the function]"""
    cases = {
        "x * x - 2.0": (lambda x: x * x - 2.0, 0.0, 2.0),
        "x * x * x - 2.0 * x - 5.0": (lambda x: x * x * x - 2.0 * x - 5.0, 3.0, 2.0),
        "x - 0.25 / x": (lambda x: x - 0.25 / x, 0.01, 9.0),
        "(x - 1.0) * (x - 1.0) * (x - 1.0)": (lambda x: (x - 1.0) * (x - 1.0) * (x - 1.0), -4.0, 4.5),
        "x / (1.0 + x * x) - 0.3": (lambda x: x / (1.0 + x * x) - 0.3, 0.0, 1.0),
    }
    found = []
    for name, (f, a, b) in cases.items():
        x, report = optimize.brentq(f, a, b, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=1000, full_output=True)
        found.append([name, a, b, x, report.function_calls])
    return found


def sparse_matrices() -> list:
    """[rows, columns, triples, x, y, starts, places, values, a x, a' y, the x with (a a' + 1) x = y]"""
    rng = np.random.default_rng(8)
    found = []
    for rows, columns, count in ((4, 6, 9), (7, 3, 12), (5, 5, 1), (20, 20, 60), (3, 2, 0)):
        i, j = rng.integers(0, rows, count), rng.integers(0, columns, count)
        values, x, y = (rng.normal(size=n).round(3) for n in (count, columns, rows))
        a = sparse.csr_array(sparse.coo_array((values, (i, j)), shape=(rows, columns)))
        a.sum_duplicates()
        solution = np.linalg.solve((a @ a.T).toarray() + np.eye(rows), y)
        made = [a.indptr, a.indices, a.data, a @ x, a.T @ y, solution]
        triples = list(zip(i.tolist(), j.tolist(), values.tolist(), strict=True))
        found.append([rows, columns, triples, x.tolist(), y.tolist(), *(part.tolist() for part in made)])
    return found


def statistics() -> list:
    """[expression with `xs` and `ys`, value]"""
    rng = np.random.default_rng(2)
    xs, ys = np.round(rng.normal(size=25), 3), np.round(rng.gamma(2.0, size=25), 3)
    table = np.stack([xs, ys, xs * ys], axis=1)
    counts, edges = np.histogram(ys, bins=7)
    line = stats.linregress(xs, ys)
    grid, *both = np.histogram2d(xs, ys, bins=3)
    steps = np.cumsum(ys)
    flat = np.fft.fft2(np.stack([xs + 1j * ys, ys + 1j * ys, xs + 1j * xs]))
    pair = {
        "Stats.t_test 0.3 xs": stats.ttest_1samp(xs, 0.3),
        "Stats.welch_test xs [1.0, 2.5, 0.5]": stats.ttest_ind(xs, [1.0, 2.5, 0.5], equal_var=False),
        "Stats.chi_square_test [9.0, 12.0, 21.0] [14.0, 12.0, 16.0]": stats.chisquare([9, 12, 21], [14, 12, 16]),
    }
    return [
        ["xs", xs.tolist()],
        ["ys", ys.tolist()],
        ["Stats.quantiles [0.0, 0.1, 0.37, 0.5, 1.0] ys", np.quantile(ys, [0.0, 0.1, 0.37, 0.5, 1.0]).tolist()],
        ["Stats.median ys", float(np.median(ys))],
        ["Stats.variance ys", float(np.var(ys, ddof=1))],
        ["Stats.deviation ys", float(np.std(ys, ddof=1))],
        ["Stats.covariance xs ys", float(np.cov(xs, ys)[0, 1])],
        ["Stats.correlation xs ys", float(np.corrcoef(xs, ys)[0, 1])],
        ["Stats.cov [for i < 25 -> [xs[i], ys[i], xs[i] * ys[i]]]", np.cov(table, rowvar=False).tolist()],
        ["Stats.corr [for i < 25 -> [xs[i], ys[i], xs[i] * ys[i]]]", np.corrcoef(table, rowvar=False).tolist()],
        ["Stats.skewness ys", float(stats.skew(ys))],
        ["Stats.kurtosis ys", float(stats.kurtosis(ys))],
        ["Stats.histogram 7 ys", [edges.tolist(), counts.tolist()]],
        ["Stats.line xs ys", [float(line.intercept), float(line.slope)]],
        ["Stats.histogram2d 3 xs ys", [[edge.tolist() for edge in both], grid.astype(int).tolist()]],
        ["map (Stats.kde ys) [0.0, 1.7, 9.0]", stats.gaussian_kde(ys)([0.0, 1.7, 9.0]).tolist()],
        ["Stats.ranks (xs ++ ys ++ xs)", stats.rankdata([*xs, *ys, *xs]).tolist()],
        ["Stats.spearman xs ys", float(stats.spearmanr(xs, ys).statistic)],
        *([call, [float(found.statistic), float(found.pvalue)]] for call, found in pair.items()),
        ["Quad.cumulative_trapezoid (cumsum ys) xs", integrate.cumulative_trapezoid(xs, steps, initial=0).tolist()],
        ["Fft.dct xs", fft.dct(xs).tolist()],
        ["Fft.dct (xs ++ [1.0])", fft.dct([*xs, 1.0]).tolist()],
        ["Fft.centred xs", np.fft.fftshift(xs).tolist()],
        ["Fft.fft2 ([xs, ys, xs], [ys, ys, xs])", [part.tolist() for part in (flat.real, flat.imag)]],
    ]


def curves() -> list:
    """[function, places, values, points, values there]"""
    rng = np.random.default_rng(3)
    xs = np.cumsum(rng.uniform(0.2, 1.5, 9)).round(3)
    ys = rng.normal(size=9).round(3)
    at = np.linspace(xs[0] - 0.4, xs[-1] + 0.4, 20).round(4)
    inside = np.linspace(xs[0], xs[-1], 20).round(4).clip(xs[0], xs[-1])
    natural = interpolate.CubicSpline(xs, ys, bc_type="natural")
    return [
        ["linear", xs.tolist(), ys.tolist(), inside.tolist(), np.interp(inside, xs, ys).tolist()],
        [
            "cubic",
            xs.tolist(),
            ys.tolist(),
            at.tolist(),
            natural(at).tolist(),
        ],
        ["monotone", xs.tolist(), ys.tolist(), at.tolist(), interpolate.PchipInterpolator(xs, ys)(at).tolist()],
    ]


def transforms() -> list:
    """[real parts, imaginary parts, those of the transform]"""
    rng = np.random.default_rng(4)
    found = []
    for n in (1, 2, 3, 8, 12, 17, 32, 49, 67):
        z = (rng.normal(size=n) + 1j * rng.normal(size=n)).round(3)
        f = np.fft.fft(z)
        found.append([part.tolist() for part in (z.real, z.imag, f.real, f.imag)])
    return found


def distributions() -> list:
    """[distribution, x, q, its log density and cumulative probability at x, quantile of q, mean, variance, entropy]"""
    families = {
        "Normal (1.0, 2.5)": (stats.norm(1.0, 2.5), -0.7),
        "Lognormal (0.3, 0.8)": (stats.lognorm(0.8, scale=np.exp(0.3)), 2.2),
        "Student_t (3.5, 1.0, 2.0)": (stats.t(3.5, 1.0, 2.0), -1.4),
        "Cauchy (1.0, 2.0)": (stats.cauchy(1.0, 2.0), 3.0),
        "Laplace (1.0, 2.0)": (stats.laplace(1.0, 2.0), 0.2),
        "Logistic (1.0, 2.0)": (stats.logistic(1.0, 2.0), 0.2),
        "Gamma (2.7, 1.5)": (stats.gamma(2.7, scale=1 / 1.5), 0.9),
        "Gamma (0.3, 1.5)": (stats.gamma(0.3, scale=1 / 1.5), 0.01),
        "Inverse_gamma (3.2, 1.5)": (stats.invgamma(3.2, scale=1.5), 0.9),
        "Beta (2.0, 3.5)": (stats.beta(2.0, 3.5), 0.2),
        "Beta (0.4, 0.5)": (stats.beta(0.4, 0.5), 0.9),
        "Exponential 0.7": (stats.expon(scale=1 / 0.7), 2.0),
        "Uniform (-1.0, 3.0)": (stats.uniform(-1.0, 4.0), 2.0),
        "Half_normal 1.7": (stats.halfnorm(scale=1.7), 0.6),
        "Half_cauchy 1.7": (stats.halfcauchy(scale=1.7), 0.6),
    }
    found = []
    for name, (d, x) in families.items():
        for q in (0.003, 0.4, 0.98):
            values = d.logpdf(x), d.cdf(x), d.ppf(q), d.mean(), d.var(), d.entropy()
            found.append([name, x, q, [float(v) for v in values]])
    return found


def whole_numbers() -> list:
    """[distribution, n, its log probability and cumulative probability, mean, variance]"""
    families = {
        "Bernoulli 0.3": stats.bernoulli(0.3),
        "Binomial (7, 0.3)": stats.binom(7, 0.3),
        "Negative_binomial (2.5, 0.3)": stats.nbinom(2.5, 0.3),
        "Geometric 0.3": stats.geom(0.3, loc=-1),
        "Poisson 2.3": stats.poisson(2.3),
    }
    return [
        [name, n, [float(v) for v in (d.logpmf(n), d.cdf(n), d.mean(), d.var())]]
        for name, d in families.items()
        for n in (-1, 0, 1, 4, 9)
    ]


def chains() -> list:
    """[draws by chain, rhat, bulk and tail effective number of draws], by ArviZ (pip install arviz)."""
    import arviz

    rng = np.random.default_rng(6)
    found = []
    for count, length, memory, shift in ((4, 60, 0.0, 0.0), (2, 101, 0.8, 0.0), (3, 40, 0.3, 1.5), (4, 50, -0.4, 0.0)):
        draws = rng.normal(size=(count, length))
        for i in range(1, length):
            draws[:, i] += memory * draws[:, i - 1]
        draws = (draws + shift * np.arange(count)[:, None]).round(3)
        tail = arviz.ess(draws, method="tail", prob=(0.05, 0.95))
        found.append([draws.tolist(), *(float(v) for v in (arviz.rhat(draws), arviz.ess(draws), tail))])
    return found


if __name__ == "__main__":
    made = {"special": special_functions(), "stats": statistics(), "interp": curves(), "fft": transforms()}
    made |= {"root": zeros(), "sparse": sparse_matrices()}
    made |= {"continuous": distributions(), "discrete": whole_numbers(), "chains": chains()}
    for name, values in made.items():
        (HERE / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(v) for v in values) + "\n]\n")
