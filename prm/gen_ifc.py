#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the kernel's mlx5_ifc.h and writes C++ bit layouts (ifc.h) and their run-time tables (ifc_names.cpp).

In that header each `struct mlx5_ifc_X_bits` is a picture of a device structure in which one array element
stands for one bit, so the sum of the array sizes before a member is its bit offset. Only these facts are
taken over: names, offsets, widths, and the values of the enumerators.
"""
import argparse
import glob
import os
import re
import sys

KEYWORDS = set("""
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
continue decltype default delete do double else enum explicit export extern false float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register return short signed sizeof static struct switch template this throw true try typedef typeid
typename union unsigned using virtual void volatile while xor xor_eq linux unix errno major minor
""".split())
# Names that the hand-written part of the namespace, or each generated structure, uses itself.
HELPERS = set("""bits bytes bit_off Base Field Array StructArray Bytes get set ptr at fits op k Op StructInfo
FieldInfo find_struct dump opcode_name load32 load64 store32 store64 be16 be32 be64 wire""".split())

# Commands whose mailbox structures are not called like their opcode.
STRUCT_OF_OPCODE = {"2err_qp": "qp_2err", "2rst_qp": "qp_2rst", "sqd_rts_qp": "sqd2rts_qp",
                    "access_reg": "access_register", "set_flow_table_entry": "set_fte",
                    "query_flow_table_entry": "query_fte", "delete_flow_table_entry": "delete_fte"}


class Error(Exception):
    pass


def version_key(path):
    """Orders .../linux-headers-6.1.0-9-common below ...-6.1.0-10-common."""
    m = re.search(r"linux-headers-([^/]+)", path)
    return [int(x) for x in re.findall(r"\d+", m.group(1))] if m else []


def headers():
    """The mlx5_ifc.h of installed kernels' headers: Debian's first, those without real time first, the newest first."""
    under = os.environ.get("HCASIM_USR_SRC", "/usr/src")  # tests have another
    found = glob.glob(f"{under}/linux-headers-*/include/linux/mlx5/mlx5_ifc.h")
    return sorted(found, key=lambda p: ("-common" in p, "-rt/" not in p, version_key(p)), reverse=True)


def what_lacks(path):
    """What is in the way of building the sources with this header; empty: nothing."""
    from names_used import lacking  # beside this file
    try:
        p = parse(path)
    except (Error, OSError) as e:
        return str(e)
    members = {ident(name): {ident(m.name, (name + "_at",)): ident(m.type_name) if m.kind == "struct" and m.count is None else None
                             for m, _ in members_of(p.layouts, layout)} for name, layout in p.layouts.items()}
    constants = {ident(re.sub(r"^MLX5_(CMD_OP_)?", "", name)) for name in p.enums}
    found = lacking(members, constants, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    some = ", ".join(f"{name} ({user})" for name, user in sorted(found.items())[:3])
    return f"{path} lacks {len(found)} names that the sources use, such as {some}" if found else ""


def find_header(path, prefer=""):
    if path:
        if not os.path.isfile(path):
            raise Error(f"{path}: no such file (HCASIM_MLX5_IFC must name mlx5_ifc.h; empty: the newest installed)")
        lack = what_lacks(path)
        if lack:
            print(f"gen_ifc: {lack}", file=sys.stderr)
        return path
    why = ""
    for candidate in ([prefer] if os.path.isfile(prefer) else []) + headers():
        lack = what_lacks(candidate)
        if not lack:
            return candidate
        why = why or lack
    raise Error(f"{why or 'mlx5_ifc.h not found'}: install the newest linux-headers-*-common, or set HCASIM_MLX5_IFC")


TOKEN = re.compile(r"[A-Za-z_]\w*|0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|<<|>>|\S")


def tokenize(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = text.replace("\\\n", " ")
    defines = re.findall(r"^\s*#\s*define\s+(\w+)[ \t]+(.+)$", text, flags=re.M)
    text = re.sub(r"^\s*#[^\n]*", " ", text, flags=re.M)
    return TOKEN.findall(text), defines


class Member:
    def __init__(self, name, kind, type_name=None, width=0, count=None):
        self.name = name  # as in the header
        self.kind = kind  # scalar, struct
        self.type_name = type_name  # structure name for kind struct
        self.width = width  # bits of an element, kind scalar
        self.count = count  # None: not an array; 0: flexible
        self.offset = 0


class Layout:
    def __init__(self, name, is_union):
        self.name = name
        self.is_union = is_union
        self.members = []
        self.bits = None


class Parser:
    def __init__(self):
        self.layouts = {}
        self.enums = {}
        self.toks = []
        self.i = 0

    def peek(self, n=0):
        return self.toks[self.i + n] if self.i + n < len(self.toks) else ""

    def take(self, want=None):
        t = self.peek()
        if not t or (want is not None and t != want):
            raise Error(f"unexpected '{t}' where '{want or 'a token'}' was expected "
                        f"near: {' '.join(self.toks[max(0, self.i - 8):self.i + 4])}")
        self.i += 1
        return t

    def parse(self, text):
        self.toks, defines = tokenize(text)
        self.i = 0
        for name, value in defines:
            v = self.evaluate(tokenize(value)[0])
            if v is not None:
                self.enums.setdefault(name, v)
        while self.peek():
            if self.peek() == "enum":
                self.enum()
            elif self.peek() in ("struct", "union"):
                self.top_struct()
            else:
                self.i += 1

    def evaluate(self, toks):
        out = []
        for n, t in enumerate(toks):
            if re.match(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$", t):
                t = t.rstrip("uUlL")
                base = 16 if t[:2] in ("0x", "0X") else 8 if len(t) > 1 and t[0] == "0" else 10
                out.append(str(int(t, base)))
            elif re.match(r"[A-Za-z_]", t):
                if t in ("BIT", "BIT_ULL"):
                    out.append("1 <<")
                elif t in self.enums:
                    out.append(str(self.enums[t]))
                else:
                    return None
            elif t in ("(", ")", "<<", ">>", "|", "&", "+", "-", "*", "~"):
                out.append(t)
            else:
                return None
        try:
            return int(eval(" ".join(out), {"__builtins__": {}}))  # digits and operators only, see above
        except (SyntaxError, TypeError, ValueError):
            return None

    def enum(self):
        self.take("enum")
        if self.peek() != "{":
            self.take()
        if self.peek() != "{":
            return
        self.take("{")
        value = -1
        while self.peek() != "}":
            name = self.take()
            if self.peek() == "=":
                self.take()
                expr, depth = [], 0
                while depth or self.peek() not in (",", "}"):
                    t = self.take()
                    depth += {"(": 1, ")": -1}.get(t, 0)
                    expr.append(t)
                value = self.evaluate(expr)
            elif value is not None:
                value += 1
            if value is not None:
                self.enums.setdefault(name, value)
            if self.peek() == ",":
                self.take()
        self.take("}")

    def top_struct(self):
        is_union = self.take() == "union"
        name = self.peek()
        m = re.match(r"mlx5_ifc_(\w+?)(?:_bits)?$", name)
        if not m or self.peek(1) != "{":
            self.i += 1
            return
        self.take()
        self.body(m.group(1), is_union)
        if self.peek() == ";":
            self.take()

    def body(self, name, is_union):
        layout = Layout(name, is_union)
        self.take("{")
        while self.peek() != "}":
            self.member(layout)
        self.take("}")
        self.layouts[name] = layout
        return layout

    def dims(self):
        dims = []
        while self.peek() == "[":
            self.take()
            expr = []
            while self.peek() != "]":
                expr.append(self.take())
            self.take()
            v = 0 if not expr else self.evaluate(expr)
            if v is None:
                raise Error(f"cannot evaluate array size {' '.join(expr)}")
            dims.append(v)
        return dims

    def member(self, layout):
        t = self.take()
        if t == "u8":
            name = self.take()
            dims = self.dims()
            self.take(";")
            if len(dims) == 1 and dims[0] == 0:
                layout.members.append(Member(name, "scalar", width=8, count=0))
            elif len(dims) == 1:
                layout.members.append(Member(name, "scalar", width=dims[0]))
            elif len(dims) == 2:
                layout.members.append(Member(name, "scalar", width=dims[1], count=dims[0]))
            else:
                raise Error(f"{layout.name}.{name}: {len(dims)} dimensions")
            return
        if t == "DECLARE_FLEX_ARRAY":  # (struct mlx5_ifc_X_bits, name)
            self.take("(")
            kind, tag = self.take(), self.take() if self.peek() != "," else ""
            self.take(",")
            name = self.take()
            self.take(")")
            self.take(";")
            m = re.match(r"mlx5_ifc_(\w+?)(?:_bits)?$", tag)
            if kind == "u8":
                layout.members.append(Member(name, "scalar", width=8, count=0))
            elif m:
                layout.members.append(Member(name, "struct", type_name=m.group(1), count=0))
            else:
                raise Error(f"{layout.name}.{name}: unknown element type {kind} {tag}")
            return
        if t not in ("struct", "union"):
            raise Error(f"{layout.name}: unexpected member type '{t}'")
        is_union = t == "union"
        tag = None
        if self.peek() != "{":
            tag = self.take()
        if self.peek() == "{":
            m = re.match(r"mlx5_ifc_(\w+?)(?:_bits)?$", tag or "")
            inner_name = m.group(1) if m else f"{layout.name}_anon{len(layout.members)}"
            self.body(inner_name, is_union)
        else:
            m = re.match(r"mlx5_ifc_(\w+?)(?:_bits)?$", tag)
            if not m:
                raise Error(f"{layout.name}: unknown type {tag}")
            inner_name = m.group(1)
        name = self.take() if self.peek() != ";" else ""
        dims = self.dims()
        self.take(";")
        if len(dims) > 1:
            raise Error(f"{layout.name}.{name}: {len(dims)} dimensions")
        layout.members.append(Member(name, "struct", type_name=inner_name, count=dims[0] if dims else None))

    def resolve(self):
        """Computes offsets and sizes; removes structures that use an unknown one."""
        def size(name, stack):
            layout = self.layouts.get(name)
            if layout is None:
                raise KeyError(name)
            if layout.bits is not None:
                return layout.bits
            if name in stack:
                raise Error(f"structure {name} contains itself")
            off = top = 0
            for m in layout.members:
                m.offset = 0 if layout.is_union else off
                w = m.width if m.kind == "scalar" else size(m.type_name, stack | {name})
                total = w * (1 if m.count is None else m.count)
                off = m.offset + total
                top = max(top, off)
            layout.bits = top
            return top

        for name in list(self.layouts):
            try:
                size(name, frozenset())
            except KeyError as e:
                print(f"gen_ifc: {name} left out: uses unknown {e}", file=sys.stderr)
        self.layouts = {n: l for n, l in self.layouts.items() if l.bits is not None}


def ident(name, extra=()):
    if name in KEYWORDS or name in HELPERS or name in extra:
        return name + "_"
    return "_" + name if name[:1].isdigit() else name


def is_reserved(name):
    return name == "" or re.match(r"(reserved|rsvd|reseved)(_|\d|$)", name) is not None


def members_of(layouts, layout, base=0):
    """Members worth a name; those of an unnamed inner structure are lifted, as C does."""
    for m in layout.members:
        if m.kind == "struct" and m.name == "" and m.count is None:
            yield from members_of(layouts, layouts[m.type_name], base + m.offset)
        elif not is_reserved(m.name):
            yield m, base + m.offset


def hexs(v):
    return hex(v) if v > 9 else str(v)


def parse(path):
    p = Parser()
    fpga = os.path.join(os.path.dirname(path), "mlx5_ifc_fpga.h")  # mlx5_ifc.h includes it
    for f in (fpga, path):
        if os.path.isfile(f):
            with open(f, encoding="utf-8", errors="replace") as fh:
                p.parse(fh.read())
    p.resolve()
    for need in ("cqc", "qpc", "mkc", "eqc", "create_cq_in", "cmd_hca_cap"):
        if need not in p.layouts:
            raise Error(f"{path}: structure mlx5_ifc_{need}_bits not found; is this mlx5_ifc.h?")
    return p


def write_header(p, source, out):
    w = out.append
    w("// SPDX-License-Identifier: BSD-3-Clause")
    w(f"// Generated by prm/gen_ifc.py from {source}. Do not edit.")
    w("#pragma once\n")
    w("#include <cstdint>\n")
    w('#include "prm/field.h"\n')
    w("namespace hcasim::prm {\n")
    w("namespace op {")
    w("/// Command opcodes (input dword 0, bits 31:16).")
    w("enum Op : uint16_t {")
    for name, value in p.enums.items():
        if name.startswith("MLX5_CMD_OP_") and 0 <= value <= 0xFFFF:
            w(f"  {ident(name[12:])} = 0x{value:x},")
    w("};\n}  // namespace op\nusing op::Op;\n")
    w("/// Enumerators of the same header, without the MLX5_ prefix.")
    w("namespace k {")
    for name, value in p.enums.items():
        if name.startswith("MLX5_CMD_OP_") or not 0 <= value < 1 << 64:
            continue
        short = name[5:] if name.startswith("MLX5_") else name
        if short != name and short in p.enums:
            continue
        t, suffix = ("uint32_t", "u") if value < 1 << 32 else ("uint64_t", "ull")
        w(f"inline constexpr {t} {ident(short)} = {hexs(value)}{suffix};")
    w("}  // namespace k\n")
    for name in p.layouts:
        w(f"template <unsigned Base> struct {name}_at;")
    w("")
    for name, layout in p.layouts.items():
        w(f"template <unsigned Base> struct {name}_at {{")
        w(f"  static constexpr unsigned bit_off = Base, bits = {hexs(layout.bits)}, bytes = "
          f"{hexs((layout.bits + 7) // 8)};")
        seen = set()
        for m, off in members_of(p.layouts, layout):
            n = ident(m.name, (name + "_at",))
            if n in seen:
                continue
            seen.add(n)
            o = f"Base + {hexs(off)}" if off else "Base"
            if m.kind == "struct" and m.count is None:
                w(f"  using {n} = {m.type_name}_at<{o}>;")
            elif m.kind == "struct":
                w(f"  using {n} = StructArray<{o}, {m.type_name}_at, {m.count}>;")
            elif m.count is not None and m.width <= 64:
                w(f"  using {n} = Array<{o}, {m.width}, {m.count}>;")
            elif m.width <= 64:
                w(f"  using {n} = Field<{o}, {m.width}>;")
            else:
                w(f"  using {n} = Bytes<{o}, {hexs(m.width * (m.count or 1))}>;")
        w("};")
    w("")
    for name in p.layouts:
        w(f"using {ident(name)} = {name}_at<0>;")
    w("\n}  // namespace hcasim::prm")


def write_names(p, source, out):
    w = out.append
    w("// SPDX-License-Identifier: BSD-3-Clause")
    w(f"// Generated by prm/gen_ifc.py from {source}. Do not edit.")
    w('#include "prm/info.h"\n')
    w("namespace hcasim::prm::tables {")
    index = {n: i for i, n in enumerate(sorted(p.layouts))}
    rows, spans = [], {}
    for name in sorted(p.layouts):
        start = len(rows)
        for m, off in members_of(p.layouts, p.layouts[name]):
            if m.kind == "struct":
                nested, width = index[m.type_name], p.layouts[m.type_name].bits
            else:
                nested, width = -1, m.width
            rows.append(f'{{"{m.name}", {off}, {width}, {nested}, {-1 if m.count is None else m.count}}},')
        spans[name] = (start, len(rows) - start)
    w("const FieldInfo kFields[] = {")
    out.extend(rows)
    w("};")
    w("const StructInfo kStructs[] = {  // sorted by name")
    for name in sorted(p.layouts):
        layout = p.layouts[name]
        s, n = spans[name]
        w(f'{{"{name}", {layout.bits}, {"true" if layout.is_union else "false"}, kFields + {s}, {n}}},')
    w("};")
    w(f"const unsigned kStructCount = {len(p.layouts)};")
    ops = {}
    for name, value in p.enums.items():
        if not name.startswith("MLX5_CMD_OP_") or re.search(r"_(MAX|START|END)$", name):
            continue
        if 0 <= value <= 0xFFFF:
            ops.setdefault(value, name[12:])
    w("const OpcodeInfo kOpcodes[] = {  // sorted by value")
    for value in sorted(ops):
        n = ops[value].lower()
        n = STRUCT_OF_OPCODE.get(n, n)
        i_in, i_out = index.get(n + "_in", -1), index.get(n + "_out", -1)
        if n.endswith("_general_object"):
            i_in, i_out = index.get("general_obj_in_cmd_hdr", -1), index.get("general_obj_out_cmd_hdr", -1)
        w(f'{{0x{value:x}, "{ops[value]}", {i_in}, {i_out}}},')
    w("};")
    w(f"const unsigned kOpcodeCount = {len(ops)};")
    w("}  // namespace hcasim::prm::tables")


def write_if_changed(path, lines):
    text = "\n".join(lines) + "\n"
    try:
        with open(path) as f:
            if f.read() == text:
                os.utime(path)
                return
    except OSError:
        pass
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--ifc", default="", help="path of mlx5_ifc.h; default: the newest installed that has all that the sources name")
    a.add_argument("--prefer", default="", help="the header that is taken before these, if it has all")
    a.add_argument("--header", help="C++ header to write")
    a.add_argument("--names", help="C++ source of the run-time tables to write")
    a.add_argument("--print-path", action="store_true", help="only print the header that would be read")
    args = a.parse_args()
    if args.print_path:
        print(find_header(args.ifc, args.prefer))
        return
    path = args.ifc or find_header("")
    p = parse(path)
    m = re.search(r"linux-headers-[^/]+", path)
    source = (m.group(0) + " " if m else "") + "mlx5_ifc.h"
    for target, writer in ((args.header, write_header), (args.names, write_names)):
        if target:
            lines = []
            writer(p, source, lines)
            write_if_changed(target, lines)


if __name__ == "__main__":
    try:
        main()
    except (Error, OSError) as e:
        print(f"gen_ifc: {e}", file=sys.stderr)
        sys.exit(1)
