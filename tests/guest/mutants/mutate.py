#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts single faults into the sources of the kernel's mlx5 drivers, and builds the modules that have them.

  mutate.py --list                                          a line each: NAME MODULE RULE WORK FAILS ALSO (lists with commas, none: -)
  mutate.py --show NAME SOURCES                             what the fault changes
  mutate.py --fix NAME SOURCES                              the same the other way: the fix that was taken back, as a patch of SOURCES
  mutate.py --build OUT --sources SOURCES --headers DIR --work DIR --modules DIR [--only NAME,...]
--bugs with any of them: the table is bugs.toml, not mutants.toml.

SOURCES: unpacked kernel sources (drivers/infiniband/hw/mlx5 and drivers/net/ethernet/mellanox are needed). DIR of --headers: the
kernel's headers for modules. --modules: where Debian's own modules are. OUT gets NAME.ko and the list. In WORK the objects stay, so
that a fault costs one file's compilation.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = {"mlx5_ib": "drivers/infiniband/hw/mlx5", "mlx5_core": "drivers/net/ethernet/mellanox/mlx5/core"}
# Once in a module's life, of those times when the condition holds.
ONCE = "#define ONCE(condition) ({ static bool hcasim_done; bool hcasim_now = !hcasim_done && (condition); hcasim_done |= hcasim_now; hcasim_now; })\n"


def fail(text):
    sys.exit("mutate.py: " + text)


def table(name):
    with open(os.path.join(HERE, name), "rb") as file:
        mutants = tomllib.load(file)["mutant"]
    names = [m["name"] for m in mutants]
    if len(set(names)) != len(names):
        fail("two mutants have the same name")
    for m in mutants:
        if m["module"] not in FOLDER:
            fail(f"{m['name']}: no module {m['module']}")
        if "find" in m and not m.get("rule") and not m.get("subject"):
            fail(f"{m['name']}: a fault, and neither a rule that names it nor the commit that ended it")
    return mutants


def body(text, function):
    """Where a function's definition stands: from its first line to the brace that ends it."""
    for head in re.finditer(rf"^(?![\s#/*}}]).*\b{re.escape(function)}\(", text, re.M):
        end = re.compile(r"^\}", re.M).search(text, head.start())
        semicolon = text.find(";", head.start())
        brace = text.find("{", head.start())
        if end and brace != -1 and brace < semicolon:
            return head.start(), end.end()
    return None


def mutated(m, sources):
    """The text of the mutant's file, with its fault."""
    path = os.path.join(sources, FOLDER[m["module"]], m["file"])
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        fail(f"{m['name']}: {error}")
    if "find" not in m:
        return text
    for change in [m, *m.get("way", [])]:
        found = body(text, change["function"])
        if not found:
            fail(f"{m['name']}: {m['file']} has no function {change['function']}; this kernel's source is another than the fault was made for")
        part = text[found[0] : found[1]]
        count = len(re.findall(change["find"], part))
        if count != 1:
            fail(f"{m['name']}: {m['file']}, {change['function']}: {count} places match {change['find']!r}, one must; this kernel's source is another than the fault was made for")
        text = text[: found[0]] + re.sub(change["find"], change["put"], part) + text[found[1] :]
    return (ONCE if "ONCE(" in m["put"] else "") + text


def lines(mutants):
    out = ""
    for m in mutants:
        out += " ".join([m["name"], m["module"], m.get("rule") or "-", m.get("work", "-").replace(" ", ","), "fails" if m.get("fails") else "loads", ",".join(m.get("also", [])) or "-"]) + "\n"
    return out


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Kbuild:
    def __init__(self, options):
        self.headers, self.work, self.modules, self.sources = options.headers, options.work, options.modules, options.sources
        # The compiler that the headers name is of another Debian than this machine's, perhaps.
        self.compiler = [] if shutil.which("gcc-12") else ["CC=gcc", "HOSTCC=gcc"]

    def make(self, folder, target):
        command = ["make", "-s", "-C", self.headers, "M=" + folder, f"-j{os.cpu_count()}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "KCFLAGS=-g0", *self.compiler, target]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            fail(f"{' '.join(command)} failed:\n{done.stdout}")

    def folder(self, module):
        folder = os.path.join(self.work, FOLDER[module])
        if not os.path.isdir(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            shutil.copytree(os.path.join(self.sources, FOLDER[module]), folder)
            if module == "mlx5_core":  # whose files include it by a relative path
                mlxfw = "drivers/net/ethernet/mellanox/mlxfw"
                shutil.copytree(os.path.join(self.sources, mlxfw), os.path.join(self.work, mlxfw))
        return folder

    def build(self, m, out):
        folder = self.folder(m["module"])
        file = os.path.join(folder, m["file"]) if "file" in m else None
        if file:
            write(file, mutated(m, self.sources))
        try:
            if m["module"] == "mlx5_ib":
                self.make(folder, "modules")
                shutil.copyfile(os.path.join(folder, "mlx5_ib.ko"), out)
            else:
                object_name = m["file"].removesuffix(".c") + ".o"
                self.make(folder, object_name)
                # A module is an object file still: where both have a function, the first one's is taken.
                subprocess.run(["ld", "-r", "-z", "muldefs", "-o", out, os.path.join(folder, object_name), os.path.join(self.modules, "mlx5_core.ko")], check=True)
        finally:
            if file:
                shutil.copyfile(os.path.join(self.sources, FOLDER[m["module"]], m["file"]), file)


def build_work(kbuild, out):
    """The module that gives a driver work as users in the kernel do."""
    with open(os.path.join(HERE, "reg_work.c"), encoding="utf-8") as file:
        text = file.read()
    stamp = hashlib.sha256(text.encode()).hexdigest()
    if os.path.exists(out) and os.path.exists(out + ".of") and open(out + ".of", encoding="ascii").read() == stamp:
        return
    folder = os.path.join(kbuild.work, "reg_work")
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "reg_work.c"), text)
    write(os.path.join(folder, "Makefile"), "obj-m := reg_work.o\n")
    kbuild.make(folder, "modules")
    shutil.copyfile(os.path.join(folder, "reg_work.ko"), out)
    write(out + ".of", stamp)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--show", nargs=2, metavar=("NAME", "SOURCES"))
    parser.add_argument("--fix", nargs=2, metavar=("NAME", "SOURCES"))
    parser.add_argument("--bugs", action="store_true")
    parser.add_argument("--build", metavar="OUT")
    for name in ("sources", "headers", "work", "modules"):
        parser.add_argument("--" + name)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    mutants = table("bugs.toml" if options.bugs else "mutants.toml")
    if options.list:
        sys.stdout.write(lines(mutants))
    elif options.show or options.fix:
        import difflib

        name, sources = options.show or options.fix
        m = next((m for m in mutants if m["name"] == name), None) or fail("no mutant " + name)
        path = os.path.join(FOLDER[m["module"]], m["file"])
        with open(os.path.join(sources, path), encoding="utf-8") as file:
            texts = [file.read(), mutated(m, sources)]
        if options.fix:
            texts.reverse()
        sys.stdout.writelines(difflib.unified_diff(*(text.splitlines(True) for text in texts), "a/" + path, "b/" + path, n=0))
    elif options.build:
        only = set(filter(None, options.only.split(",")))
        os.makedirs(options.build, exist_ok=True)
        kbuild = Kbuild(options)
        # All faults find their places, before anything is built.
        texts = {m["name"]: mutated(m, options.sources) if "file" in m else "" for m in mutants}
        for m in mutants:
            if only and m["name"] not in only:
                continue
            out = os.path.join(options.build, m["name"] + ".ko")
            stamp = hashlib.sha256((m["module"] + texts[m["name"]]).encode()).hexdigest()
            if os.path.exists(out) and os.path.exists(out + ".of") and open(out + ".of", encoding="ascii").read() == stamp:
                continue
            print(m["name"], flush=True)
            kbuild.build(m, out)
            write(out + ".of", stamp)
        wanted = {m["name"] for m in mutants}
        if not options.bugs:
            build_work(kbuild, os.path.join(options.build, "reg_work.ko"))
            wanted.add("reg_work")
        for name in os.listdir(options.build):
            if name.split(".")[0] not in wanted:
                os.remove(os.path.join(options.build, name))
        write(os.path.join(options.build, "list"), lines(m for m in mutants if not only or m["name"] in only))
    else:
        parser.error("--list, --show or --build")


main()
