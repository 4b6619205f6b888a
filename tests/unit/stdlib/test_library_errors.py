"""What the library refuses, and that it says which function refused it."""

import pytest


@pytest.mark.parametrize(
    "expression, message",
    [
        ("maximum (zeros 0)", "maximum of an empty array"),
        ("minimum (zeros 0)", "minimum of an empty array"),
        ("argmax (zeros 0)", "argmax of an empty array"),
        ("argmin (zeros 0)", "argmin of an empty array"),
        ("gather [1, 2] [2]", "index 2 is out of bounds"),
        ("scatter [1, 2] [-1] [5]", "index -1 is out of bounds"),
        ("List.nth [1; 2] 2", "List.nth"),
        ("List.nth [1; 2] (-1)", "List.nth"),
        ("List.zip [1;] [1; 2]", "List.zip"),
        ('List.assoc "x" [("y", 1);]', "List.assoc"),
        ('String.split "" "abc"', "String.split"),
        ('String.repeat 4611686018427387904 "abcd"', "4611686018427387904 times 4 are too many elements"),
        ("length (Array.repeat 4611686018427387904 [1, 2, 3, 4])", "4611686018427387904 times 4 are too many"),
        ('Data.read_text "no/such/file"', "no/such/file"),
        ('Data.read_csv "no/such/file"', "no/such/file"),
        (
            "Linalg.solve [[1.0, 2.0], [2.0, 4.0]] [1.0, 2.0]",
            "the matrix is singular: column 1 depends on those before it",
        ),
        ("Linalg.inverse [[0.0]]", "Linalg.inverse: the matrix is singular"),
        ("Linalg.triangular_solve [[0.0]] [1.0]", "Linalg.triangular_solve: there is a zero on the diagonal"),
        ("Linalg.cholesky [[1.0, 2.0], [2.0, 1.0]]", "the pivot of row 1 is -3.0; if that is rounding, add 1e-8 *"),
        ("Interp.linear [0.0, 2.0, 1.0] [0.0, 1.0, 2.0] 0.5", "1.0 comes after 2.0"),
        ("Stats.kde [2.0, 2.0] 2.0", "the deviation of 2 numbers is 0.0"),
        ("Linalg.qr [[1.0, 2.0]]", "Linalg.qr: 1 rows are fewer than 2 columns"),
        ("Linalg.svd [[1.0, 2.0]]", "Linalg.svd: 1 rows are fewer than 2 columns"),
        ("Linalg.lstsq [[1.0, 2.0], [2.0, 4.0]] [1.0, 2.0]", "Linalg.lstsq: the matrix is not of full rank"),
        ("Random.draw_index (Random.key 1) [0.5, -0.5]", "weights are at least 0"),
        (
            "Random.categorical (Random.key 1) [0.0, 0.0] 3",
            "the least of 2 weights is 0.0 and their sum is 0.0; weights",
        ),
        ("Random.bernoulli (Random.key 1) 1.5 3", "1.5 is no probability"),
        ("Random.draw_binomial (Random.key 1) 3 (0.0 / 0.0)", "is no probability"),
        ("Random.draw_gamma (Random.key 1) (-1.0)", "the shape of a gamma distribution cannot be -1.0"),
        ("Random.beta (Random.key 1) 0.5 (-0.5) 2", "the shapes of a beta distribution cannot be 0.5 and -0.5"),
        ("Random.draw_poisson (Random.key 1) (-1.0)", "-1.0 events cannot be expected"),
        ("Random.exponential (Random.key 1) 0.0 3", "the rate of an exponential distribution cannot be 0.0"),
        ("Dist.sample (Random.key 1) (Dist.Normal (0.0, -1.0))", "Dist.sample: there is no Normal (0.0, -1.0)"),
        ("Dist.sample_discrete (Random.key 1) (Dist.Geometric 0.0)", "Dist.sample_discrete: there is no Geometric 0.0"),
        ("Dist.quantile_discrete (Dist.Bernoulli 2.0) 0.5", "Dist.quantile_discrete: there is no Bernoulli 2.0"),
        ("Nn.one_hot 3 3", "Nn.one_hot: place 3 is not one of 3"),
        ("Nn.ctc [[1.0, 2.0]] [0]", "Nn.ctc: label 0 is below 1; 0 stands for none"),
        (
            "Nn.max_pool { Nn.plain with stride = (0, 1) } (1, 1) [[[[1.0]]]]",
            "the stride and the dilation of windows must be 1 or more",
        ),
        ("Ode.rk4 (fun _ y -> y) 0 0.0 1.0 1.0", "Ode.rk4: 0 steps are too few; 1 or more"),
        ("Ode.rk4_checkpoint (fun _ y -> y) (-3) 0.0 1.0 1.0", "Ode.rk4_checkpoint: -3 steps are too few"),
        (
            "Optim.train (Optim.sgd 0.5) (Random.key 1) 2 1 (fun _ p -> p * p) (range 0) 0.0",
            "Optim.train: there are no examples",
        ),
        ("Stats.autocorrelation 2 [1.0, 2.0]", "Stats.autocorrelation: a lag of 2 for 2 numbers"),
        ("Optim.step_decay 0.1 0.5 0 3", "Optim.step_decay: 0 steps are too few"),
        ("Random.draw_below (Random.key 1) 0", "Random.draw_below: there is no integer from 0 to -1"),
        ("Tree.clip_norm (-1.0) [1.0]", "Tree.clip_norm: no norm is at most -1.0"),
        ("Ad.diffn (-1) (fun x -> x) 1.0", "no derivative of order -1"),
    ],
)
def test_refusal(dpl, expression: str, message: str) -> None:
    run = dpl("run", "-", stdin=f"do print ({expression})\n")
    assert (run.returncode, run.stdout) == (1, ""), run.stderr
    assert message in run.stderr
