"""A Par -> a kernel: LLVM text of the function that a GPU's threads start with.

    par i < n to keep { ...; yield x }         define ptx_kernel void @par_3f2a(arguments, i64 %n0, ptr %o0) {
                                                 for i from this thread's number, in steps of all threads {
                                        =>         ...; o0[i] = x } }

The arguments are the leaves of what the points use, without owners: everything from outside is lent.  Then come the
counts of the dimensions, and for each result its address, with the lengths that only the host knows.  What the threads
do is decided by the kernel's geometry (`passes/device/kernels.py`).
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import path
from dplc.flat.ops.row import Dim
from dplc.machine.cuda.device import DeviceFunction
from dplc.machine.cuda.points import Places, Points
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.module.unit import Unit
from dplc.machine.llvm.types import memory_type
from dplc.machine.llvm.writer import Values
from dplc.passes.device.escape import staying
from dplc.passes.device.kernels import THREADS, Kernel

ENTRY = ""  # the name of the function that threads start with, in its emitter


class KernelEmitter(DeviceFunction):
    """The entry of a kernel under construction."""

    def __init__(self, unit: Unit, kernel: Kernel) -> None:
        leaf = (*kernel.levels, *kernel.loops)[-1].par
        super().__init__(unit, f.Fn(ENTRY, kernel.args, (), leaf.body, "", leaf.span))
        self.kernel = kernel
        self.params: list[str] = []

    def text(self) -> str:
        """The kernel's text; its name is @NAME."""
        where = self.arguments()
        if self.kernel.recursive:
            self.w.do(f"call void @rt.begin_thread(ptr {self.w.slot('i64')})")
        variables = self.work(where)
        body = "\n".join((*self.w.slots, "  br label %start", "start:", *self.w.lines))
        head = f'define ptx_kernel void @NAME({", ".join(self.params)}) "nvvm.maxntid"="{THREADS}" nounwind'
        return f"{variables}{head} {{\nentry:\n{body}\n  ret void\n}}\n"

    def work(self, where: Places) -> str:
        """Writes what a thread does; the variables in shared memory."""
        self.staying = staying(f.Block((f.Bind((), self.kernel.par),), ()))  # rows that points keep are copied
        first, step = self.w.let("call i64 @rt.thread()"), self.w.let("call i64 @rt.threads()")
        points = Points(self, self.kernel, where, first, step)
        points.write()
        return points.variables

    # ---- parameters

    def arguments(self) -> Places:
        """The parameters of the kernel: the leaves of what it uses.  Gives the places of results."""
        outs = self.kernel.outs
        targets = {made.out.target for made in outs if made.out.target is not None}
        for i, var in enumerate(self.kernel.args):
            self.env[var.name] = self.argument(f"%a{i}", var.name, var.ty, var in targets)
        counts = [self.length(atom, f"%n{i}") for i, atom in enumerate(self.kernel.space)]
        places: list[str] = []
        sizes: list[list[str]] = []
        for i, made in enumerate(outs):
            places.append(self.pointer(f"%o{i}", "noalias" if made.out.target is None else ""))
            dims = made.row if made.out.kind == "keep" else made.dims
            sizes.append([self.length(dim, f"%o{i}.{k}") for k, dim in enumerate(dims)])
        if self.kernel.geometry == "groups":
            self.params.append("i64 %groups")
        return Places(counts, places, sizes, "%groups")

    def argument(self, name: str, at: str, ty: f.Type, changes: bool) -> Values:
        """The leaves of a variable from outside, or of its part `at` a path."""
        if isinstance(ty, f.Tup):
            parts = [self.argument(f"{name}.{i}", path(at, i), item, changes) for i, item in enumerate(ty.items)]
            return [leaf for part in parts for leaf in part]
        if isinstance(ty, f.Arr):
            data = self.pointer(f"{name}.d", "" if changes else "noalias readonly")
            known = [self.kernel.known.get((at, k)) for k in range(ty.rank)]
            lengths = [f"{name}.{k}" if n is None else str(n.value) for k, n in enumerate(known)]
            self.params += [f"i64 {n}" for n in lengths if not n.isdigit()]
            return ["null", data, *lengths]
        if isinstance(ty, f.Data):
            return [self.pointer(name, "")]
        (leaf,) = leaves(ty)
        self.params.append(f"{memory_type(leaf)} {name}")
        return [self.w.let(f"trunc i8 {name} to i1") if leaf == "i1" else name]

    def pointer(self, name: str, how: str) -> str:
        """A parameter that points to memory of the device."""
        self.params.append(" ".join(filter(None, ("ptr addrspace(1)", how, name))))
        return self.w.let(f"addrspacecast ptr addrspace(1) {name} to ptr")

    def length(self, dim: Dim, name: str) -> str:
        """A length that the host knows; constants are known here, too."""
        if isinstance(dim, f.Const):
            return str(dim.value)
        self.params.append(f"i64 {name}")
        return name
