#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares a run of rdma-core's tests with what expected.txt says, and counts.

usage: compare.py --where eth|ib|eth-vf|ib-vf|eth-lag|eth-later|ib-later|eth-next|ib-next --kernel K --guest-status N --rules FILE [-v] [--summary FILE] EXPECTED LOG [NAME...]
A line of EXPECTED:  NAME pass|skip|error|omit [@WHERE,...] [REASON]     (omit: not run there)
WHERE is a link (eth, ib), a kernel (6.1) or both (eth-6.1), or a link's virtual function (ib-vf), bond (eth-lag), later card (ib-later) or next release (eth-next), whose
tests come and go: there a test that EXPECTED does not know may pass or be skipped, and one may pass that was not to; the line that says most about where counts.
Or:  NAME breaks RULE,... REASON     (validation rules that this test has the driver break on purpose; every other test breaks none)
FILE is what the HCA says at its end of the rules that were broken; LOG names each breach as it happens, between the tests' lines.
"""
import re
import sys


def read_expected(path, link):
    """{name: [(places, outcome, reason)]}, and the names of tests that are left out there"""
    expected, omitted = {}, []
    for number, line in enumerate(open(path), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if re.match(r"test_\S+\s+breaks\s", line):
            continue
        match = re.fullmatch(r"(test_\S+)\s+(pass|skip|error|omit)(?:\s+@(\S+))?(?:\s+(.*))?", line)
        if match is None:
            sys.exit(f"{path}:{number}: not understood: {line}")
        name, outcome, places, reason = match.groups()
        if outcome != "pass" and not reason:
            sys.exit(f"{path}:{number}: what does not run needs a reason")
        if outcome == "omit":
            if not places or link in places.split(","):
                omitted.append(name)
            continue
        expected.setdefault(name, []).append((places.split(",") if places else [""], outcome, reason or ""))
    return expected, omitted


def read_breaks(path):
    """{name: rules that the test breaks on purpose}"""
    found = {}
    for number, line in enumerate(open(path), 1):
        words = line.split("#")[0].split()
        if len(words) < 2 or words[1] != "breaks":
            continue
        if len(words) < 4:
            sys.exit(f"{path}:{number}: wanted: NAME breaks RULE,... REASON")
        found[words[0]] = set(words[2].split(","))
    return found


def read_broken(log):
    """{test: {rule: times}}; "": outside of all tests. What is broken when no test runs is the last one's."""
    found, name = {}, ""
    for line in open(log, errors="replace"):
        if match := re.match(r"(?:BEGIN|RESULT \w+) (test_\S+)", line):
            name = match[1]
        elif match := re.search(r": rule ([\w-]+) broken \(", line):
            of = found.setdefault(name, {})
            of[match[1]] = of.get(match[1], 0) + 1
    return found


def judge_rules(broken, allowed, passed, report, known):
    """What is wrong with the rules that were broken, as lines; those of tests that are not known may be broken."""
    wrong, total = [], {}
    for name, rules in broken.items():
        for rule, times in rules.items():
            total[rule] = total.get(rule, 0) + times
            if name in known and rule not in allowed.get(name, ()):
                wrong.append(f"{name or 'before all tests'}: the driver broke rule {rule} ({times} times), which expected.txt does not say")
    for name, rules in allowed.items():
        for rule in sorted(rules - set(broken.get(name, ()))):
            if name in passed:
                wrong.append(f"{name}: expected: the driver breaks rule {rule}; it did not")
    try:
        said = {rule: int(n) for line in open(report) for rule, n in (word.split("=") for word in line.split()[3:])}
        if said != total:
            wrong.append(f"the HCA says that these rules were broken: {said}; named as it happened: {total}")
    except FileNotFoundError:
        wrong.append("no HCA has said what its driver broke")
    return wrong


def outcome_for(lines, link, kernel):
    """The outcome that the most particular line gives for this place."""
    physical, _, function = link.partition("-")
    rank = {f"{physical}-{kernel}": 3, kernel: 2, physical: 1, "": 0}
    if function:
        rank[link] = 4
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
    moving = link.endswith("-next")
    expected, omitted = read_expected(expected_file, link)
    for name in omitted:
        expected.pop(name, None)
    results, finished, complaint = {}, None, []
    for line in open(log, errors="replace"):
        match = re.match(r"RESULT (pass|skip|fail|error|hang) (\S+) ([\d.]+) ?(.*)", line)
        if match:
            results[match[2]] = (match[1], match[4])
        if match := re.match(r"SUITE (\d+) of (\d+):", line):
            finished = (int(match[1]), int(match[2]))
        if line.startswith("the kernel complained"):
            complaint.append("the guest's kernel complained; the run's log says what")
    counts, wrong = {}, []
    for name, (outcome, reason) in results.items():
        counts[outcome] = counts.get(outcome, 0) + 1
        wanted = outcome_for(expected.get(name, []), link, kernel)
        if outcome == wanted or moving and (outcome == "pass" or outcome == "skip" and wanted != "pass"):
            continue
        wrong.append(f"{name}: {outcome}" + (f" ({reason})" if reason else "") + f"; expected: {wanted or 'nothing, it is not in expected.txt'}")
    chosen = lambda name: not names or any(name == each or name.startswith(each + ".") for each in names)
    for name, lines in expected.items():
        if not moving and chosen(name) and name not in results and outcome_for(lines, link, kernel):
            wrong.append(f"{name}: did not run; expected: {outcome_for(lines, link, kernel)}")
    broken = read_broken(log)
    passed = {name for name, (outcome, _) in results.items() if outcome == "pass"}
    known = {name for name, lines in expected.items() if outcome_for(lines, link, kernel) == "pass"} if moving else broken.keys()
    wrong += judge_rules(broken, read_breaks(expected_file), passed, options["--rules"], known)
    for each in wrong:
        print(f"  {each}")
    status = options["--guest-status"]
    if not finished:
        complaint.append(f"the run did not come to its end (guest's status {status})")
    else:
        if finished[0] != finished[1]:
            complaint.append(f"only {finished[0]} of {finished[1]} tests were run")
        # 1: a test did not pass, 3: the kernel complained; both are judged above.
        if int(status) not in (0, 1, 3):
            complaint.append(f"the guest's status is {status}")
    if not results:
        complaint.append("no test ran")
    for each in complaint:
        print(f"  {each}")
    told = ", ".join(f"{counts.get(outcome, 0)} {outcome}" for outcome in ("pass", "skip", "fail", "error", "hang"))
    if not names and omitted:
        told += f", {len(omitted)} left out"
    breaches = sum(sum(rules.values()) for rules in broken.values())
    summary = f"pyverbs on link={link}, Linux {kernel}: {told}; rules broken {breaches} times; {len(wrong)} not as expected"
    print(summary)
    if "--summary" in options:
        open(options["--summary"], "w").write(summary + "\n")
    sys.exit(1 if wrong or complaint else 0)


if __name__ == "__main__":
    main()
