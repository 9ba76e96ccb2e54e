#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the cards of a running machine have counted: over QEMU's monitor (QMP) or the control socket of hcasim serve."""
import argparse
import json
import re
import socket
import sys


class Lines:
    """JSON objects, one a line, on a Unix socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw", encoding="utf-8")

    def read(self):
        line = self.file.readline()
        if not line:
            raise OSError("the other end has closed the connection")
        return json.loads(line)

    def ask(self, request):
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        answer = self.read()
        while "event" in answer:  # of QMP, in between
            answer = self.read()
        if "error" in answer:
            error = answer["error"]
            raise OSError(error["desc"] if isinstance(error, dict) else error)
        return answer


def from_control(path, names):
    lines = Lines(path)
    cards = names or lines.ask({"cards": True})["names"]
    return {name: lines.ask({"card": name, "get": "stats"})["value"] for name in cards}


def from_qmp(path, names):
    lines = Lines(path)
    lines.read()  # the greeting
    lines.ask({"execute": "qmp_capabilities"})

    def run(command, **arguments):
        return lines.ask({"execute": command, "arguments": arguments})["return"]

    cards = {}
    for place in ("/machine/peripheral", "/machine/peripheral-anon"):
        for child in run("qom-list", path=place):
            name = child["name"]
            if child["type"] == "child<mlx5-hca>" and (not names or name in names):
                cards[name] = json.loads(run("qom-get", path=f"{place}/{name}", property="stats"))
    return cards


def prometheus(cards):
    """The text format 0.0.4: counters, and gauges of how many objects there are."""
    rows = {}
    for card, stats in sorted(cards.items()):
        label = card.replace("\\", "\\\\").replace('"', '\\"')
        for group, values in stats.items():
            if isinstance(values, dict):
                kind = "counter" if group == "counters" else "gauge"
                for name, value in values.items():
                    metric = re.sub(r"[^a-zA-Z0-9_]", "_", f"hcasim_{name}" if kind == "counter" else f"hcasim_{group}_{name}")
                    rows.setdefault((metric + ("_total" if kind == "counter" else ""), kind), []).append((label, value))
            elif isinstance(values, (int, float)) and not isinstance(values, bool):
                rows.setdefault((f"hcasim_{group}", "gauge"), []).append((label, values))
    out = []
    for (metric, kind), samples in sorted(rows.items()):
        out.append(f"# TYPE {metric} {kind}")
        out += [f'{metric}{{card="{label}"}} {value}' for label, value in samples if isinstance(value, (int, float))]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(prog="hcasim stats", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--control", metavar="SOCKET", help="control socket of hcasim serve")
    where.add_argument("--qmp", metavar="SOCKET", help="QEMU's monitor: -qmp unix:SOCKET,server=on,wait=off")
    parser.add_argument("--card", action="append", metavar="ID", help="this card alone; more than once: these (all)")
    parser.add_argument("--prometheus", action="store_true", help="in Prometheus' text format; else JSON")
    args = parser.parse_args()
    try:
        cards = from_control(args.control, args.card) if args.control else from_qmp(args.qmp, args.card)
    except (OSError, ValueError, KeyError) as error:
        print(f"hcasim stats: {args.control or args.qmp}: {error}", file=sys.stderr)
        if isinstance(error, (ConnectionRefusedError, FileNotFoundError)):
            print("  -> is it the " + ("--control of a running hcasim serve?" if args.control else "-qmp socket of a running QEMU?"), file=sys.stderr)
        return 1
    if not cards:
        print(f"hcasim stats: {args.control or args.qmp}: no such card there", file=sys.stderr)
        return 1
    print(prometheus(cards) if args.prometheus else json.dumps(cards, indent=2))
    return 0


sys.exit(main())
