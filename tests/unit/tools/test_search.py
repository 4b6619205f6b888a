"""`dpl doc --search`, `dpl doc NAME`, and `:search` and `:doc` of the session."""

import pytest
from dpl.types.library import library
from dplc.tools.search import known_in, named, search, told


@pytest.fixture(scope="module")
def known() -> list:
    return list(known_in(library().modules))


@pytest.mark.parametrize(
    "query, first",
    [
        ("float[n] -> float", {"sum", "mean", "norm", "std", "var", "prod", "maximum", "minimum"}),
        ("float[n, n] -> float[n] -> float[n]", {"Linalg.solve"}),
        ("'a list -> ('a -> 'b) -> 'b list", {"List.map"}),  # in any order of arguments
        ("('a -> 'b) -> 'a list -> 'b list", {"List.map"}),
        ("string -> string -> bool", {"String.contains", "String.ends_with", "String.starts_with"}),
        ("float -> float", {"abs", "cos", "exp"}),
        ("key -> int -> float[?]", {"Random.normal", "Random.uniform"}),
        ("np.linalg.inv", {"Linalg.inverse"}),
        ("np.histogram", {"Plot.histogram", "Stats.histogram"}),  # and not what is in `Npy`
        ("jax.nn.softmax", {"softmax"}),
        ("diffrax.diffeqsolve", {"Ode.dopri5", "Ode.usual"}),
        ("vmap", {"map"}),
        ("random permutation", {"Random.permutation"}),
        ("gamma", {"Special.gamma", "Random.gamma"}),
        ("cumulative sum", {"cumsum"}),  # in another system `cumulative_sum`
        ("batch norm", {"Nn.batch_norm"}),
        ("read csv columns", {"Data.read_csv"}),  # the most words in its name
        ("histograms", {"Plot.histogram", "Stats.histogram"}),  # a plural
        ("Gumbel copula", set()),
        ("Optim.goal", {"Optim.goal"}),  # a data type
        ("Converged", {"Optim.Converged"}),  # a constructor
    ],
)
def test_first_found(known: list, query: str, first: set[str]) -> None:
    found = [one.name for one in search(query, known)][: len(first)]
    assert set(found) <= first and len(found) == len(first) if len(first) < 3 else set(found) & first, found


@pytest.mark.parametrize(
    ("query", "way"),
    [
        ("pow", "x ** y"),
        ("torch.hstack", "xs ++ ys"),
        ("jit", "compiled"),
        ("np.tile", "Array.repeat n xs"),
        ("np.diff", "Array.diff xs"),
        ("torch.save", "Tree.save path p"),
        ("moving average", "Array.windows n xs"),
        ("norm.rvs", "Dist.samples key n d"),
        ("k-means", "argmin"),
        ("peaks", "above both neighbours"),
        ("particle filters", "Random.categorical"),
        ("regex", "String.split"),
    ],
)
def test_what_has_no_name_here_is_written_in_another_way(known: list, query: str, way: str) -> None:
    """It is told first, and `tile` does not find `quantile`."""
    text = told(query, known)
    assert way in text.splitlines()[0] and "quantile" not in text


ELSEWHERE = """
meshgrid linspace vander vstack hsplit swapaxes histogram2d lexsort ptp searchsorted digitize bincount unique
percentile cumtrapz simpson interp polyfit polyval roots einsum kron slogdet sqrtm fft2 fftshift dct stft hann lfilter
find_peaks curve_fit brentq linprog griddata CubicSpline cdist KDTree gaussian_kde ttest_ind spearmanr rankdata zscore
chisquare bootstrap jv lambertw logsumexp isclose nan_to_num vmap jacfwd hvp scan fori_loop remat tree_map Conv2d
solve_ivp clip_grad_norm_ state_dict cuda plate deterministic NUTS SVI HalfNormal LKJCholesky hpdi waic normal_lpdf
simplex log_mix ode_bdf mapslices eachrow permutedims ODEProblem Tsit5 Zygote Flux readlines DataFrame groupby heatmap
errorbar sleep
"""


def test_names_of_other_systems_lead_somewhere(known: list) -> None:
    assert [name for name in ELSEWHERE.split() if not told(name, known)] == []


def test_types_that_do_not_fit(known: list) -> None:
    """Ranks and classes are looked at: no addition of vectors gives a number, no logarithm is an int."""
    names = [one.name for one in search("float[n] -> float[n] -> float", known)]
    assert "dot" in names and "+" not in names
    assert "log" not in [one.name for one in search("int -> int", known)]


def test_named(known: list) -> None:
    assert [one.name for one in named("nuts", known)] == ["Mcmc.nuts"]
    assert [one.name for one in named("List.map", known)] == ["List.map"]
    assert [one.name for one in named("map", known)] == ["map"]
    assert [one.name for one in named("Dist.continuous", known)] == ["Dist.continuous"]  # a type
    assert "a record: { tolerance : float; " in named("goal", known)[0].doc
    assert [one.name for one in named("torch.linalg.eye", known)] == ["Linalg.identity"]


def test_commands(dpl) -> None:
    assert dpl("doc", "--search", "int[n] -> string").stdout.splitlines()[0].startswith("String.of_codes cs : ")
    assert dpl("doc", "--search", "least", "squares").stdout == dpl("doc", "--search", "least squares").stdout
    assert dpl("doc", "hessian").stdout.startswith("Ad.hessian f x : ")
    assert "starts_with part s : string -> string -> bool\n    Does the string begin" in dpl("doc", "String").stdout
    for words in (("xyzzy",), ("--search", "xyzzy plugh")):
        run = dpl("doc", *words)
        assert (run.returncode, run.stdout) == (1, "") and "xyzzy" in run.stderr
    run = dpl("repl", stdin=":search string -> float option\n:doc nuts\n:doc arange\n:doc xyzzy\n:search\n")
    assert (
        "String.to_float s : " in run.stdout and "Mcmc.nuts s key density " in run.stdout and "range : " in run.stdout
    )
    assert "there is no `xyzzy`" in run.stderr and "search for what?" in run.stderr
