#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of the QEMU shim call one another in one direction: order_test.py MLX5_HCA_H NM OBJECT...

The order is the list at the top of mlx5_hca.h, highest first. Every object must be in the list and every file of
the list must have an object; one that needs a symbol of a file above it fails the test.
"""
import os
import re
import subprocess
import sys


def symbols(nm, obj):
    """What an object defines for others, and what it needs of them."""
    defined, needed = set(), set()
    for line in subprocess.run([nm, "--extern-only", obj], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        (needed if kind in "Uwv" else defined).add(name)
    return defined, needed


def mistakes(order, objects, nm):
    found = {os.path.basename(o)[: -len(".o")]: symbols(nm, o) for o in objects}
    for name in sorted(set(order) ^ set(found)):
        yield f"{name}: " + ("is not in the list of mlx5_hca.h" if name in found else "is in the list, and is not built")
    owner = {symbol: name for name, (defined, _) in found.items() for symbol in defined}
    arrows = 0
    for name in (n for n in order if n in found):
        for symbol in sorted(found[name][1]):
            below = owner.get(symbol)
            if below is None or below not in order:
                continue
            arrows += 1
            if order.index(below) <= order.index(name):
                yield f"{name} needs {symbol} of {below}, which stands above it"
    if not arrows:
        yield "no file needs another one: these are not the objects of the shim"


def main():
    header, nm, *objects = sys.argv[1:]
    with open(header, encoding="utf-8") as f:
        order = re.findall(r"^ \* - (\w+\.c) ", f.read(), re.MULTILINE)
    wrong = list(mistakes(order, objects, nm))
    print("\n".join(wrong) or f"{len(objects)} files, in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
