# SPDX-License-Identifier: Apache-2.0
"""The kernel's host in a guest runs the cases of cases/ against a target."""

import atexit
import pathlib
import re
import subprocess
import time
import unittest

import keys_for_tests
from linux_guest import STATUS_CANNOT, Guest, GuestError, Setup
from target import CairnBox, KernelTarget, MIB, TargetError

CASES = pathlib.Path(__file__).resolve().parent / "cases"
CASE_LIMIT_S = 900
STATUS_NOT_UNDONE = 99  # of a case: the guest is of no use any more

# Left out of the short form: each has a sibling in it, or takes long for what it shows.
LONG_CASES = {"header_digest", "data_digest", "short_queues", "link_flaps", "target_restarted"}
# Need namespaces that are devices of their one path: until 6.15 the kernel's multipath device hides
# that a namespace writes atomically.
ONE_PATH_CASES = {"atomic_writes"}


def case_names():
    """In the order in which they are written."""
    for file in ("identify", "data", "change", "link", "auth"):
        text = (CASES / f"{file}.sh").read_text()
        yield from re.findall(r"^case_(\w+)\(\)", text, re.MULTILINE)


def report(verdict, where, case, seconds, reason=""):
    """The one line about a case."""
    print(f"{verdict:4} {where}: {case} ({seconds:.1f} s){': ' if reason else ''}{reason}",
          flush=True)


def build_program(source, folder):
    """A program for guests, which have hardly any libraries."""
    program = pathlib.Path(folder) / source.stem
    subprocess.run(["clang-19", "-O1", "-static", "-o", program, source], check=True)
    return program


def at_end(cls, action):
    """Has `action` run when the tests of a class are over, also when they are interrupted."""
    cls.addClassCleanup(action)
    atexit.register(action)


class KernelHost(unittest.TestCase):
    """One guest and one target for all cases; a case that fails spoils neither for the next."""

    kernel: str
    folder: pathlib.Path    # for guests and logs
    guests: pathlib.Path    # the cache of guest images
    kernel_options = ("nvme_core.io_timeout=120", "nvme_core.admin_timeout=120")

    @classmethod
    def make_target(cls):
        """Returns the target to meet; raises SkipTest when there is none."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.target = cls.make_target()
        at_end(cls, cls.target.kill)
        cls.guest = None
        at_end(cls, lambda: cls.guest and cls.guest.kill())
        cls.added = set()
        cls.start_guest()
        cls.target.start()
        cls.guest.wait_ready()

    @classmethod
    def start_guest(cls):
        # Two processors: the kernel opens as many queues as it has.
        cls.folder.mkdir(parents=True, exist_ok=True)
        programs = [build_program(source, cls.folder) for source in CASES.glob("*.c")]
        setup = Setup(kernel=cls.kernel, script=CASES / "case.sh", cpus=2,
                      kernel_options=cls.kernel_options, files=(*CASES.glob("*.sh"), *programs))
        cls.guest = Guest.start(cls.guests, cls.folder / "host", setup)

    def run_case(self, case):
        where = f"{self.kernel} host, {self.target.name}"
        begun = time.monotonic()
        status, reason = self.outcome(case)
        seconds = time.monotonic() - begun
        if status == 0:
            report("pass", where, case, seconds)
        elif status == STATUS_CANNOT:
            report("skip", where, case, seconds, reason)
            self.skipTest(reason)
        else:
            report("FAIL", where, case, seconds, reason)
            log = self.keep_log(case)
            self.restore(status)
            self.fail(f"{where}: {case}: {reason}\n{log}")

    def outcome(self, case):
        """Runs a case; returns (status, reason)."""
        reason = self.target.why_not_case(case)
        if reason:
            return STATUS_CANNOT, reason
        kind = "cairn" if isinstance(self.target, CairnBox) else "kernel"
        keys = f"HOST_KEY={keys_for_tests.HOST} BOX_KEY={keys_for_tests.CONTROLLER}" \
               f" OTHER_KEY={keys_for_tests.OTHER} KEY_HOST_ID={keys_for_tests.HOST_ID}"
        command = (f"ADDR={self.target.address_for_guests} PORT={self.target.port}"
                   f" NQN={self.target.nqn} TARGET={kind} {keys}; run_case {case}")
        try:
            status, reason = self.guest.run(command, CASE_LIMIT_S, self.answer)
        except GuestError as error:
            status, reason = STATUS_NOT_UNDONE, str(error)
        trouble = self.target.trouble()
        if trouble:
            return status or 1, f"{trouble}; {reason}"
        if status == STATUS_NOT_UNDONE:
            return status, reason or "what it started could not be undone"
        return status, reason

    def answer(self, args):
        """Does what a case asks for; returns why not, or None."""
        try:
            match args:
                case ["link", ("on" | "off") as state]:
                    self.guest.set_link(state == "on")
                case ["target", "add", nsid, size_mib, *service]:
                    self.added.add(int(nsid))
                    self.target.add_namespace(int(nsid), int(size_mib) * MIB, *service)
                case ["target", "resize", nsid, size_mib]:
                    self.target.resize_namespace(int(nsid), int(size_mib) * MIB)
                case ["target", "remove", nsid]:
                    self.target.remove_namespace(int(nsid))
                    self.added.discard(int(nsid))
                case ["target", ("start" | "kill" | "restart") as verb]:
                    getattr(self.target, verb)()
                case _:
                    return f"nobody knows how to {' '.join(args)}"
        except (GuestError, TargetError, OSError) as error:
            return " ".join(str(error).split())
        return None

    def keep_log(self, case):
        """Writes down what the case printed, and returns its last lines."""
        try:
            text = self.guest.run("cat /tmp/case.log")[1]
        except GuestError:
            text = (self.guest.folder / "console").read_text(errors="replace")
        log = self.folder / f"{case}.log"
        log.write_text(text)
        return "\n".join([*text.splitlines()[-30:], f"(all of it: {log})"])

    def restore(self, status):
        """Makes guest and target what the next case expects, after one that failed."""
        if status == STATUS_NOT_UNDONE:
            self.guest.kill()
            self.start_guest()
            self.guest.wait_ready()
        self.guest.set_link(True)
        if self.target.trouble():
            self.target.kill()
            self.target.start()
        for nsid in list(self.added):
            self.answer(["target", "remove", str(nsid)])
        self.added.clear()


class OnCairnBox(KernelHost):
    program: pathlib.Path

    @classmethod
    def make_target(cls):
        reason = CairnBox.why_not(cls.program)
        if reason:
            raise unittest.SkipTest(reason)
        return CairnBox(cls.program, cls.folder)


class OnePathOnCairnBox(OnCairnBox):
    kernel_options = (*OnCairnBox.kernel_options, "nvme_core.multipath=N")


class OnKernelTarget(KernelHost):
    @classmethod
    def make_target(cls):
        return KernelTarget(cls.guests, cls.folder, cls.kernel)


def with_cases(base, name, full, **members):
    """A subclass of `base` with a test for each case that is meant for it."""
    def test(case):
        return lambda self: self.run_case(case)
    one_path = issubclass(base, OnePathOnCairnBox)
    tests = {f"test_{case}": test(case) for case in case_names()
             if (case in ONE_PATH_CASES) == one_path and (full or case not in LONG_CASES)}
    return type(name, (base,), members | tests)
