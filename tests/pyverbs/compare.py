#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares a run of rdma-core's tests with what expected.txt says, and counts.

usage: compare.py --where eth|ib --kernel K --guest-status N [-v] [--summary FILE] EXPECTED LOG [NAME...]
A line of EXPECTED:  NAME pass|skip|omit [@WHERE,...] [REASON]     (omit: not run at all)
WHERE is a link (eth, ib), a kernel (6.1) or both (eth-6.1); the line that says most about where counts.
"""
import re
import sys


def read_expected(path):
    """{name: [(places, outcome, reason)]}, and the names of tests that are left out"""
    expected, omitted = {}, []
    for number, line in enumerate(open(path), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"(test_\S+)\s+(pass|skip|omit)(?:\s+@(\S+))?(?:\s+(.*))?", line)
        if match is None:
            sys.exit(f"{path}:{number}: not understood: {line}")
        name, outcome, places, reason = match.groups()
        if outcome != "pass" and not reason:
            sys.exit(f"{path}:{number}: what does not run needs a reason")
        if outcome == "omit":
            omitted.append(name)
            continue
        expected.setdefault(name, []).append((places.split(",") if places else [""], outcome, reason or ""))
    return expected, omitted


def outcome_for(lines, link, kernel):
    """The outcome that the most particular line gives for this place."""
    rank = {f"{link}-{kernel}": 3, kernel: 2, link: 1, "": 0}
    best = None
    for places, outcome, _ in lines:
        for place in places:
            if place in rank and (best is None or rank[place] >= best[0]):
                best = (rank[place], outcome)
    return best[1] if best else None


def main():
    words, options = sys.argv[1:], {}
    while words and words[0].startswith("-"):
        if words[0] == "-v":
            options["-v"] = True
            words = words[1:]
        else:
            options[words[0]] = words[1]
            words = words[2:]
    expected_file, log, names = words[0], words[1], words[2:]
    link, kernel = options["--where"], options["--kernel"]
    expected, omitted = read_expected(expected_file)
    results, finished, complaint = {}, False, []
    for line in open(log, errors="replace"):
        match = re.match(r"RESULT (pass|skip|fail|error|hang) (\S+) ([\d.]+) ?(.*)", line)
        if match:
            results[match[2]] = (match[1], match[4])
        finished = finished or line.startswith("SUITE ")
        if line.startswith("the kernel complained"):
            complaint.append("the guest's kernel complained; the run's log says what")
    counts, wrong = {}, []
    for name, (outcome, reason) in results.items():
        counts[outcome] = counts.get(outcome, 0) + 1
        wanted = outcome_for(expected.get(name, []), link, kernel)
        if outcome == wanted:
            continue
        wrong.append(f"{name}: {outcome}" + (f" ({reason})" if reason else "") + f"; expected: {wanted or 'nothing, it is not in expected.txt'}")
    chosen = lambda name: not names or any(name == each or name.startswith(each + ".") for each in names)
    for name, lines in expected.items():
        if chosen(name) and name not in results and outcome_for(lines, link, kernel):
            wrong.append(f"{name}: did not run; expected: {outcome_for(lines, link, kernel)}")
    for each in wrong:
        print(f"  {each}")
    if not finished:
        complaint.append(f"the run did not come to its end (guest's status {options['--guest-status']})")
    if not results:
        complaint.append("no test ran")
    for each in complaint:
        print(f"  {each}")
    told = ", ".join(f"{counts.get(outcome, 0)} {outcome}" for outcome in ("pass", "skip", "fail", "error", "hang"))
    if not names and omitted:
        told += f", {len(omitted)} left out"
    summary = f"pyverbs on link={link}, Linux {kernel}: {told}; {len(wrong)} not as expected"
    print(summary)
    if "--summary" in options:
        open(options["--summary"], "w").write(summary + "\n")
    sys.exit(1 if wrong or complaint else 0)


if __name__ == "__main__":
    main()
