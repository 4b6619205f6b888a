"""Words after FILE go to the program: an option among them is refused if the program reads no arguments."""

from pathlib import Path

import pytest

UNREAD = {"interpreted first": "do print 1\n", "native": "do print (grad (fun x -> sqrt x) 0.0)\n"}
READ = "do print (List.length Sys.args)\ndo print (grad (fun x -> x * x) 3.0)\n"


@pytest.mark.parametrize("name", UNREAD)
def test_an_option_after_a_program_without_arguments_is_refused(dpl, name: str, tmp_path: Path) -> None:
    (program := tmp_path / "main.dp").write_text(UNREAD[name])
    for command in (("run",), ("run", "--engine", "interp"), ("run", "-O0"), ("profile",)):
        run = dpl(*command, program, "--nan", "trap")
        assert (run.returncode, run.stdout) == (2, ""), command
        assert "`--nan` stands after FILE" in run.stderr
    for _ in range(3):  # compiled, and from the cache
        assert dpl("run", program, "1", "-1", "-.5", "-", "--").returncode == 0
    assert dpl("run", program, "1", "-O2").returncode == 2


def test_a_program_that_reads_them_gets_them(dpl, tmp_path: Path) -> None:
    (program := tmp_path / "main.dp").write_text(READ)
    for options in ((), (), (), ("--engine", "interp")):
        run = dpl("run", *options, program, "--nan", "trap")
        assert (run.returncode, run.stdout) == (0, "2\n6.0\n")
