# SPDX-License-Identifier: BSD-3-Clause
"""Which names of generated layouts the C++ sources use: a header that has not all of them cannot be built with.

Sources name layouts, members and enumerators in full (prm::mtmp_reg::sensor_index, prm::k::OBJ_TYPE_IPSEC) or by aliases
(using r = prm::mtmp_reg; ... r::sensor_index), which are followed within a file, in the order of its lines. What this reader
does not understand (arguments of templates and macros) counts as there: a header that would do must not be refused.
"""
import functools
import os
import re

# Of prm/field.h and of each layout, beside its members.
HELPERS = {"bit_off", "bits", "bytes", "type", "width", "at", "count"}
# Comments, strings, directives of the preprocessor with the lines that they go on in.
BLANK = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
# What else may be called like an alias has no layout: arguments of templates, types of our own.
ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([^;]*);|\b(?:typename|class|struct|enum(?:\s+class)?|namespace)\s+(\w+)\b(?!\s*::)")
CHAIN = re.compile(r"(?<![\w:>])\w+(?:\s*::\s*\w+)+")


def sources(root):
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name != "build" and name[0] != "."
                    and not os.path.exists(os.path.join(folder, name, "CMakeCache.txt"))]
        for name in sorted(files):
            if name.endswith((".cpp", ".h")) and name[0] != ".":  # editors' own
                yield os.path.join(folder, name)


@functools.lru_cache(maxsize=None)  # more than one header may be asked about
def text_of(path):
    """A file's text, if it may name layouts."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return BLANK.sub(" ", text) if "prm" in text else ""


def lacking(members, constants, root):
    """Names that the sources below `root` use and the header lacks, each with a file that does.

    `members`: of each layout its members, with the layout of those that are one themselves (else None).
    `constants`: enumerators and opcodes.
    """
    ours = set()  # what the hand-written part of the namespace has
    for path in sources(os.path.join(root, "prm")):
        ours.update(re.findall(r"\w+", text_of(path)))

    def without(parts):
        """The first name of a chain that the header lacks, or None."""
        if parts[0] in ("k", "op"):
            return parts[1] if len(parts) > 1 and parts[1] not in constants else None
        layout = re.sub(r"_at$", "", parts[0])
        if layout not in members:
            return None if parts[0] in ours else layout
        for name in parts[1:]:
            if layout is None or name in HELPERS:
                return None
            if name not in members[layout]:
                return f"{layout}.{name}"
            layout = members[layout][name]
        return None

    found = {}
    for path in sources(root):
        text = text_of(path)
        aliases = {}  # name: chains behind prm::, None for what has no layout

        def chains(parts):
            if parts[0] == "hcasim" and len(parts) > 1:
                parts = parts[1:]
            if parts[0] == "prm":
                return [parts[1:] or None]
            return [known and known + parts[1:] for known in aliases.get(parts[0], [None])]

        for name, target, other in ALIAS.findall(text):
            target = re.sub(r"\btypename\b|\s", "", target)
            plain = not other and re.fullmatch(r"\w+(::\w+)*", target)
            aliases.setdefault(name or other, []).extend(chains(target.split("::")) if plain else [None])
        for chain in set(CHAIN.findall(text)):
            # Where a name stands for several things in one file, any of them may be meant.
            lacks = [known and without(known) for known in chains(re.split(r"\s*::\s*", chain))]
            if all(lacks):
                found.setdefault(lacks[0], os.path.relpath(path, root))
    return found
