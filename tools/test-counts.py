#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints what a ctest JUnit file holds: counts, the failed and the slowest tests."""
import sys
import xml.etree.ElementTree as tree

cases = list(tree.parse(sys.argv[1]).getroot().iter("testcase"))


def state(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


groups = {}
for case in cases:
    first = case.get("name", "").split(".")[0]
    kind = first if first in ("guest", "pyverbs") else "host"
    counts = groups.setdefault(kind, {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
    counts[state(case)] += 1
    counts["seconds"] += float(case.get("time") or 0)
slow = sorted(cases, key=lambda case: -float(case.get("time") or 0))[:5]
print("slowest: " + ", ".join(f"{case.get('name')} {float(case.get('time') or 0):.1f} s" for case in slow))
for case in cases:
    if state(case) != "passed":
        print(f"{state(case)}: {case.get('name')}")
for kind, c in sorted(groups.items()):
    print(f"{kind:7} {c['passed']} passed, {c['failed']} failed, {c['skipped']} skipped  ({c['seconds']:.0f} s)")
total = {key: sum(c[key] for c in groups.values()) for key in ("passed", "failed", "skipped")}
print(f"tests: {sum(total.values())}, passed: {total['passed']}, failed: {total['failed']}, skipped: {total['skipped']}")
