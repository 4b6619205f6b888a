"""`dpl jupyter install` and `uninstall`: tell Jupyter how to start the kernel."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from click import ClickException
from jupyter_client.kernelspec import KernelSpecManager

NAME = "dpl"
SPEC = {
    "argv": [sys.executable, "-m", "dplc.cli", "jupyter", "kernel", "-f", "{connection_file}"],
    "display_name": "DPL",
    "language": "dpl",
    "interrupt_mode": "signal",
}


def install(prefix: Path | None) -> int:
    """Install the kernel for the user, or below a prefix such as that of a virtual environment; print its folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(SPEC, indent=1), encoding="utf-8")
        try:
            below = None if prefix is None else str(prefix)
            made = manager().install_kernel_spec(folder, NAME, user=prefix is None, prefix=below)
        except OSError as failure:
            raise ClickException(f"the kernel cannot be installed in {failure.filename}: {failure.strerror}") from None
    print(made)
    return 0


def uninstall(prefix: Path | None) -> int:
    """Remove the kernel where Jupyter finds it, or below a prefix; print its folder."""
    specs = manager()
    if prefix is not None:
        specs.kernel_dirs = [str(prefix / "share" / "jupyter" / "kernels")]
    if NAME not in specs.find_kernel_specs():
        raise ClickException("the kernel is not installed")
    try:
        print(specs.remove_kernel_spec(NAME))
    except OSError as failure:
        raise ClickException(f"the kernel in {failure.filename} cannot be removed: {failure.strerror}") from None
    return 0


def manager() -> KernelSpecManager:
    return KernelSpecManager(ensure_native_kernel=False)
