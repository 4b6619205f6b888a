"""Makes what the first run of DPL would otherwise take seconds for, when DPL is installed or a wheel is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Ship(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Run `dplc.tools.ship`.  If it fails, the first run makes everything, so only a warning says so."""
        own = [str(Path(self.root) / folder) for folder in ("lang", "compiler")]
        # PYTHONPATH would not do: pip leaves out folders that an editable installation has added
        script = f"import sys; sys.path[:0] = {own!r}; from dplc.tools.ship import ship; ship()"
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        if run.returncode:
            self.app.display_warning(f"the first run of dpl will take longer:\n{run.stderr}")
