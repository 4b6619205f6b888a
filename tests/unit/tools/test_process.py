"""Exit codes, and what is said when DPL itself is at fault."""

from pathlib import Path

import pytest
from dpl.diagnostics import Bug, DplError
from dplc.stack import on_large_stack
from dplc.tools.process import answered, guarded


def fail(error: BaseException):
    def work() -> int:
        raise error

    return work


def test_result_is_the_exit_code():
    assert guarded(lambda: 3) == 3


def test_the_users_fault(capsys: pytest.CaptureFixture[str]):
    assert guarded(fail(DplError.at("E0101", "that is no program"))) == 1
    assert "error[E0101]: that is no program" in capsys.readouterr().err


def test_our_fault_says_so_and_keeps_the_details(capsys: pytest.CaptureFixture[str]):
    assert guarded(fail(Bug("an invariant does not hold"))) == 70
    said = capsys.readouterr().err
    assert "internal error: Bug: an invariant does not hold" in said and "Please report it" in said
    details = Path(said.split()[-1])
    assert "Traceback" in details.read_text(encoding="utf-8")
    details.unlink()


def test_ctrl_c_while_python_makes_a_class():
    """Python 3.11 wraps it in an error of its own."""
    wrapped = RuntimeError("Error calling __set_name__")
    wrapped.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        answered(fail(wrapped))


def test_a_large_stack_is_large():
    def depth(n: int) -> int:
        return 0 if n == 0 else 1 + depth(n - 1)

    assert on_large_stack(lambda: depth(100_000)) == 100_000


def test_failures_cross_the_stack():
    with pytest.raises(ZeroDivisionError):
        on_large_stack(lambda: 1 // 0)
