"""exports -> the C header of a library.

/* mse (x : float[n]) (y : float[n]) : float
 * Mean squared error. */
int32_t model_mse(const double *x, int64_t x_n, const double *y, int64_t y_n, double *result);
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.diagnostics import DplError

from dplc.interface import Export, Parameter, Record, records, unlike
from dplc.machine.entry import c_types
from dplc.machine.failure.failures import Failure

WIDTH = 120
OURS = ("message", "free")  # functions of every library
WORDS = frozenset((  # of C and C++
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr",
    "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed",
    "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
    "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
))  # fmt: skip
CONVENTIONS = """\
/* {name}: made by `dpl build --lib` from {source}.
 *
 * Every function returns 0, or a code of `enum {name}_code` when it failed; {name}_message() then says what happened
 * and where.  Nothing exits or aborts.  What a failed call has made before it failed stays allocated.
 *
 * Arrays are given as a pointer to their elements, the last dimension running fastest, and those sizes that their types
 * leave open.  They are read where they are and never written to.  Sizes that must agree are compared.  Refused are
 * null pointers, except of arrays without elements; strings that are not UTF-8; booleans other than 0 and 1.
 *
 * Results go to where pointers say.  For an array or a string, `*result` is either null: then it is set to memory that
 * {name}_free() frees, and the sizes are set; or it is the caller's memory: then the sizes must say how large that is,
 * and it is an error if the result has others.  So what one call has given can be filled by the next.  Strings are
 * UTF-8 and counted; no byte marks their end.
 *
 * A name that C or C++ has a use for, `double` or `class`, ends in `_` here.
 *
 * Results may go to where arguments are.  Threads may call at once; what the program keeps, such as references, each of
 * them has for itself.  The first call of a thread evaluates the program's definitions and does what its `do`s say.
 */
"""


def header(name: str, source: str, exports: Sequence[Export]) -> str:
    """The text of the header.  Raises E0570 for an export whose name the header needs itself."""
    types = records(list(exports))
    for export in exports:
        if export.name in (*OURS, *types):
            what = "a function of every library" if export.name in OURS else "a type"
            title = f"`{export.name}` cannot be exported to C: {name}_{export.name} is {what}"
            raise DplError.at("E0570", title, export.span, helps=("export it under another name",))
    guard = f"{name.upper()}_H"
    codes = ",\n".join(f"  {name.upper()}_{kind.name} = {int(kind)}" for kind in Failure)
    parts = [
        CONVENTIONS.format(name=name, source=source),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        f"enum {name}_code {{\n{codes}\n}};\n",
        f"/* What the last failure in this thread was; valid until the next. */\nconst char *{name}_message(void);\n",
        f"/* Frees what a function has given. */\nvoid {name}_free(void *elements);\n",
        *(struct(name, record) for record in types.values()),
        *(function(name, export) for export in exports),
        "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
    ]
    return "\n".join(parts)


def struct(prefix: str, record: Record) -> str:
    names = Names()
    members = [m for field, part in record.fields for m in c_types.members(part, field)]
    lines = [f"  {declared(prefix, m, names)};" for m in members]
    return (
        f"/* {record.text} */\ntypedef struct {prefix}_{record.name} {{\n"
        + "\n".join(lines)
        + f"\n}} {prefix}_{record.name};\n"
    )


def function(prefix: str, export: Export) -> str:
    names = Names()
    results = [declared(prefix, m, names, "*") for m in c_types.members(export.result.shape, "result")]
    given = [p for parameter in export.parameters or () for p in inputs(prefix, parameter, names)] + results
    head = f"int32_t {prefix}_{export.name}("
    one = f"{head}{', '.join(given) or 'void'});"
    text = one if len(one) <= WIDTH else head + "\n    " + ",\n    ".join(given) + ");"
    docs = "".join(f"\n * {line}" for line in export.docs.strip().split("\n") if export.docs.strip())
    return f"/* {comment(export.signature)}{comment(docs)} */\n{text}\n"


class Names(set[str]):
    """The names in use in a struct or among a function's parameters."""

    def new(self, name: str) -> str:
        self.add(name := unlike(name, self | WORDS))
        return name


def inputs(prefix: str, parameter: Parameter, names: Names) -> Iterator[str]:
    for member in c_types.members(parameter.shape, parameter.name):
        constant = "const " if member.pointer or member.struct else ""
        yield constant + declared(prefix, member, names, "*" if member.struct else "")


def declared(prefix: str, member: c_types.Member, names: Names, more: str = "") -> str:
    """The C declaration of a member.  `more` adds stars for pointers to it."""
    kind = f"{prefix}_{member.type}" if member.struct else member.type
    stars = "*" * member.pointer + more
    return f"{kind} {stars}{names.new(member.name)}"


def comment(text: str) -> str:
    """A text that can stand within a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *")
