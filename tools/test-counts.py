#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints what ctest's JUnit files hold: counts, the failed and the slowest tests.

  test-counts.py RESULTS [RESULTS-OF-A-SECOND-RUN]
      A test of the second run counts as that run has it; one that passed only then is named as unsteady.
  test-counts.py --guests-to-repeat N RESULTS
      The failed tests, a line each, if all of them are of guests and there are no more than N of them; else nothing.
"""
import sys
import xml.etree.ElementTree as tree


def kind(case):
    first = case.get("name", "").split(".")[0]
    return first if first in ("guest", "pyverbs") else "host"


def state(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def read(path):
    return {case.get("name"): case for case in tree.parse(path).getroot().iter("testcase")}


def seconds(case):
    return float(case.get("time") or 0)


def to_repeat(limit, path):
    failed = [case for case in read(path).values() if state(case) == "failed"]
    if len(failed) <= limit and all(kind(case) != "host" for case in failed):
        for case in failed:
            print(case.get("name"))


def summary(paths):
    cases = read(paths[0])
    second = read(paths[1]) if len(paths) > 1 else {}
    unsteady = [name for name, case in second.items() if state(case) == "passed"]
    groups = {}
    slow = sorted(cases.values(), key=lambda case: -seconds(case))[:5]
    cases.update(second)
    for case in cases.values():
        counts = groups.setdefault(kind(case), {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
        counts[state(case)] += 1
        counts["seconds"] += seconds(case)
    print("slowest: " + ", ".join(f"{case.get('name')} {seconds(case):.1f} s" for case in slow))
    for case in cases.values():
        if state(case) != "passed":
            print(f"{state(case)}: {case.get('name')}")
    for name in unsteady:
        print(f"unsteady: {name} failed and passed when it was run again; its first output stands above")
    for name, c in sorted(groups.items()):
        print(f"{name:7} {c['passed']} passed, {c['failed']} failed, {c['skipped']} skipped  ({c['seconds']:.0f} s)")
    total = {key: sum(c[key] for c in groups.values()) for key in ("passed", "failed", "skipped")}
    print(
        f"tests: {sum(total.values())}, passed: {total['passed']}, failed: {total['failed']}, "
        f"skipped: {total['skipped']}, unsteady: {len(unsteady)}"
    )


if sys.argv[1] == "--guests-to-repeat":
    to_repeat(int(sys.argv[2]), sys.argv[3])
else:
    summary(sys.argv[1:])
