"""Where object code is loaded: anywhere, also where all that is free nearby are a few pages."""

import os
import subprocess
import sys

# Pages that are free again lie above the stack of gigabytes, and everything larger below it.
PROGRAM = """
import mmap, threading
from dpl.source import Source
from dplc.machine.run.linked import linked
from dplc.machine.run.program import load
from dplc.pipeline import Context, compile_to
compiled = compile_to("object", Source("<here>", "do print (Linalg.solve [[2.0]] [3.0])"), Context())[1]
program = linked(compiled)
pages = [mmap.mmap(-1, 4096 * n) for n in (1, 2, 3, 5, 8, 13, 2, 1, 1, 4) for _ in range(2)]
def run():
    for page in pages[::2]:
        page.close()
    for _ in range(20):
        pages.append((load(program), mmap.mmap(-1, 4096)))
    print(len(pages))
threading.stack_size(6 << 30)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_code_far_from_its_constants():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "40\n"), run.stderr
