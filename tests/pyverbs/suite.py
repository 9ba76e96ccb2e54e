#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of rdma-core's own suite in the guest, one line of result each; a test that hangs costs its time limit, not the run.

usage: suite.py FOLDER [--limit SECONDS] [--device NAME] [--pci-device ADDRESS] [--omit NAME]... [NAME...]
FOLDER holds the suite's files; NAME is a module (test_qp), a class (test_qp.QPTest) or a test (test_qp.QPTest.test_query_rc_qp); none: all that is not omitted.
Lines on stdout:  BEGIN NAME, then  RESULT <pass|skip|fail|error|hang> NAME SECONDS REASON
A worker process runs the tests one after the other; when one exceeds the limit, the worker and its children are killed and
another goes on behind that test.
"""
import importlib
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
import types
import unittest


def load_suite(folder, names):
    """The tests of the suite in order, as a list of (name, test case). Only the modules that `names` need are loaded. Names that
    begin with "-" are left out."""
    omitted = {name[1:] for name in names if name.startswith("-")}
    names = [name for name in names if not name.startswith("-")]
    sys.path.insert(0, folder)
    os.chdir(folder)
    from args_parser import parser
    device, pci = os.environ.get("SUITE_DEVICE"), os.environ.get("SUITE_PCI_DEVICE")  # workers have them, too
    sys.argv = ["suite"] + (["--dev", device] if device else []) + (["--pci-dev", pci] if pci else [])
    parser.parse_args()
    modules = sorted(each[:-3] for each in os.listdir(folder) if each.startswith("test_") and each.endswith(".py"))
    if names:
        modules = [each for each in modules if each in {name.split(".")[0] for name in names}]
    # The suite's own package file would import every module.
    package = types.ModuleType("tests")
    package.__path__ = [folder]
    sys.modules["tests"] = package
    chosen = []

    def walk(node):
        if isinstance(node, unittest.TestCase):
            name = node.id().removeprefix("tests.")
            if name in omitted:
                return
            if not names or any(name == wanted or name.startswith(wanted + ".") for wanted in names):
                chosen.append((name, node))
        else:
            for child in node:
                walk(child)

    # The suite's modules include each other in a circle that starts well only here.
    importlib.import_module("tests.utils")
    for each in modules:
        walk(unittest.TestLoader().loadTestsFromModule(importlib.import_module("tests." + each)))
    for wanted in names:
        if not any(name == wanted or name.startswith(wanted + ".") for name, _ in chosen):
            sys.exit(f"no test of the suite is named {wanted}")
    # A class that one module takes from another is found in both.
    return list(dict(reversed(chosen)).items())[::-1]


class Reporter(unittest.TestResult):
    """Tells the parent what becomes of each test, as it happens."""

    def __init__(self, tell):
        super().__init__()
        self.tell, self.outcome, self.reason = tell, "pass", ""

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.reason, self.begin = "pass", "", time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(self.outcome, time.monotonic() - self.begin, self.reason)

    def note(self, outcome, reason):
        # The first trouble counts; what the clean-up says afterwards follows from it.
        if self.outcome in ("pass", "skip"):
            self.outcome, self.reason = outcome, reason

    @staticmethod
    def shown(error):
        sys.stderr.write("".join(traceback.format_exception(*error)))
        sys.stderr.flush()
        return f"{error[0].__name__}: {error[1]}"

    def addSkip(self, test, reason):
        self.note("skip", reason)

    def addFailure(self, test, error):
        self.note("fail", self.shown(error))

    def addError(self, test, error):
        self.note("error", self.shown(error))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note("fail", self.shown(error))

    def addExpectedFailure(self, test, error):
        pass

    def addUnexpectedSuccess(self, test):
        self.note("fail", "passed where the suite expects it to fail")


def work(folder, names, first, pipe):
    """The worker: runs tests from number `first` on. `pipe` takes a line before and after each."""
    owner = os.getpid()

    def say(line):
        if os.getpid() == owner:  # some tests fork
            os.write(pipe, (line + "\n").encode())

    try:
        tests = load_suite(folder, names)
    except SystemExit as end:
        say(f"broken {end}")
        return
    say(f"count {len(tests)}")
    for number, (name, case) in enumerate(tests):
        if number < first:
            continue
        say(f"begin {number} {name}")
        # Many tests choose flags by chance; the same ones each time, or runs could not be compared.
        random.seed(name)
        one_line = lambda text: " ".join(str(text).split())
        result = Reporter(lambda outcome, seconds, reason: say(f"end {number} {outcome} {seconds:.2f} {one_line(reason)}"))
        case.run(result)
        if not result.testsRun:  # setUpClass and the like do not run here; a skipped class is told without startTest
            say(f"end {number} {result.outcome} 0 {one_line(result.reason)}")
    say("done")


def run_worker(folder, names, first, limit, report):
    """Runs one worker; returns the number of the test to go on with, or None at the end."""
    read_end, write_end = os.pipe()
    worker = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--worker", str(write_end), str(first), folder, *names],
                              pass_fds=[write_end], start_new_session=True)
    os.close(write_end)
    running, begun, buffered = None, time.monotonic(), b""
    status = None
    while True:
        left = limit - (time.monotonic() - begun)
        ready, _, _ = select.select([read_end], [], [], max(0, left))
        data = os.read(read_end, 65536) if ready else b""
        if not data:
            why = "hang" if not ready else "error"
            try:
                os.killpg(worker.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            status = worker.wait()
            os.close(read_end)
            if running is None:
                if why == "hang":
                    sys.exit("the suite could not be loaded within the time limit")
                return None
            reason = f"no end after {limit} s" if why == "hang" else f"the process ended with status {status}"
            report(why, running[1], time.monotonic() - begun, reason)
            return running[0] + 1
        buffered += data
        *lines, buffered = buffered.split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "count":
                report.total = int(rest)
            elif word == "broken":
                sys.exit(rest)
            elif word == "begin":
                number, name = rest.split(" ", 1)
                running, begun = (int(number), name), time.monotonic()
                print(f"BEGIN {name}", flush=True)
            elif word == "end":
                _, outcome, seconds, reason = (rest + " ").split(" ", 3)
                report(outcome, running[1], float(seconds), reason.strip())
                running, begun = None, time.monotonic()


class Report:
    def __init__(self):
        self.counts, self.total = {}, 0

    def __call__(self, outcome, name, seconds, reason):
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        print(f"RESULT {outcome} {name} {seconds:.2f} {reason}".rstrip(), flush=True)


def main():
    words = sys.argv[1:]
    if words and words[0] == "--worker":
        work(words[3], words[4:], int(words[2]), int(words[1]))
        return
    limit, omitted = 60, []
    while "--omit" in words:
        at = words.index("--omit")
        omitted.append("-" + words[at + 1])
        del words[at:at + 2]
    if "--limit" in words:
        at = words.index("--limit")
        limit = int(words[at + 1])
        del words[at:at + 2]
    for option, variable in ("--device", "SUITE_DEVICE"), ("--pci-device", "SUITE_PCI_DEVICE"):
        if option in words:
            at = words.index(option)
            os.environ[variable] = words[at + 1]
            del words[at:at + 2]
    if not words:
        sys.exit(__doc__)
    folder, names, report, first = words[0], words[1:] or omitted, Report(), 0
    while first is not None:
        first = run_worker(folder, names, first, limit, report)
    told = sum(report.counts.values())
    print(f"SUITE {told} of {report.total}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(report.counts.items())), flush=True)
    sys.exit(0 if told == report.total and set(report.counts) <= {"pass", "skip"} else 1)


main()
