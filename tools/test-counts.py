#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints what ctest's JUnit file holds: counts, the failed and the slowest tests.

  test-counts.py RESULTS [FOLDER]
      FOLDER holds NAME.xml of those programs of which ctest knows one entry NAME for many tests (GoogleTest's format):
      these are counted. A program that failed without such a file, or with none of its tests failed, counts as one more
      failed test: it crashed, or ran out of time.
"""
import os
import sys
import xml.etree.ElementTree as tree


def kind(name):
    first = name.split(".")[0]
    return first if first in ("guest", "pyverbs") else "host"


def state(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "disabled" or case.get("result") == "skipped":
        return "skipped"
    # ctest's "notrun" is an entry that it did not start, GoogleTest's one that a filter left out: read() drops the latter.
    return "skipped" if case.get("status") == "notrun" else "passed"


def seconds(case):
    return float(case.get("time") or 0)


def parts(path, name):
    """(name, state, seconds) of each test in a program's own file."""
    for case in tree.parse(path).getroot().iter("testcase"):
        if case.get("status") != "notrun":
            yield f"{name}: {case.get('classname')}.{case.get('name')}", state(case), seconds(case)


def read(results, folder):
    for case in tree.parse(results).getroot().iter("testcase"):
        name, whole = case.get("name"), state(case)
        path = os.path.join(folder, f"{name}.xml") if folder else ""
        if whole == "skipped" or not os.path.exists(path):
            yield name, whole, seconds(case)
            continue
        tests = list(parts(path, name))
        yield from tests
        if whole == "failed" and all(s != "failed" for _, s, _ in tests):
            yield name, "failed", seconds(case)


def summary(results, folder):
    cases = list(read(results, folder))
    slow = sorted(cases, key=lambda case: -case[2])[:5]
    print("slowest: " + ", ".join(f"{name} {time:.1f} s" for name, _, time in slow))
    for name, how, _ in cases:
        if how != "passed":
            print(f"{how}: {name}")
    groups = {}
    for name, how, time in cases:
        counts = groups.setdefault(kind(name), {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
        counts[how] += 1
        counts["seconds"] += time
    for name, c in sorted(groups.items()):
        print(f"{name:7} {c['passed']} passed, {c['failed']} failed, {c['skipped']} skipped  ({c['seconds']:.0f} s)")
    total = {key: sum(c[key] for c in groups.values()) for key in ("passed", "failed", "skipped")}
    print(f"tests: {sum(total.values())}, passed: {total['passed']}, failed: {total['failed']}, skipped: {total['skipped']}")


summary(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
