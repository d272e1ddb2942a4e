#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cairn and the Linux kernel speak NVMe/TCP, NBD and virtio with each other.

    interop_test.py [--suite kernel_host|kernel_target|kernel_nbd|kernel_vhost|kernel_pool]
                    [--program build/apps/cairn] [--folder build/interop] [-k fio] [-v]

The short form, for CI, is one kernel and the core cases: its host meets `cairn serve`, or while
there is none the kernel's target. CAIRN_INTEROP=full is all kernels, all cases and both targets.
"""

import argparse
import os
import pathlib
import signal
import sys
import unittest

sys.dont_write_bytecode = True
from kernel_host import (OnCairnBox, OnePathOnCairnBox, OnKernelTarget,  # noqa: E402
                         with_cases)
from kernel_nbd import KernelNbd  # noqa: E402
from kernel_pool import KernelPool  # noqa: E402
from kernel_target import CairnHost  # noqa: E402
from kernel_vhost import KernelVhost  # noqa: E402
from linux_guest import KERNELS  # noqa: E402
from target import CairnBox  # noqa: E402

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
SHORT_KERNELS = ("6.12",)


def kernel_host(full, kernel, **settings):
    """Yields test cases: the kernel's host on each target."""
    yield with_cases(OnCairnBox, "OnCairnBox", full, kernel=kernel, **settings)
    yield with_cases(OnePathOnCairnBox, "OnePathOnCairnBox", full, kernel=kernel, **settings)
    if full or CairnBox.why_not(settings["program"]):
        yield with_cases(OnKernelTarget, "OnKernelTarget", full, kernel=kernel, **settings)


def kernel_target(_full, kernel, **settings):
    """Yields test cases: our host on the kernel's target."""
    yield type("CairnHost", (CairnHost,), {"kernel": kernel, **settings})


def kernel_nbd(_full, kernel, **settings):
    """Yields test cases: the kernel's nbd client on our NBD door."""
    yield type("KernelNbd", (KernelNbd,), {"kernel": kernel, **settings})


def kernel_vhost(_full, kernel, **settings):
    """Yields test cases: QEMU and the kernel's virtio driver on our vhost-user door."""
    yield type("KernelVhost", (KernelVhost,), {"kernel": kernel, **settings})


def kernel_pool(_full, kernel, **settings):
    """Yields test cases: volumes with replicas at the target of a kernel that it chooses itself."""
    if kernel in SHORT_KERNELS:
        yield type("KernelPool", (KernelPool,), settings)


SUITES = {"kernel_host": kernel_host, "kernel_target": kernel_target, "kernel_nbd": kernel_nbd,
          "kernel_vhost": kernel_vhost, "kernel_pool": kernel_pool}


def make_suite(args, name_patterns):
    loader = unittest.TestLoader()
    loader.testNamePatterns = name_patterns
    full = os.environ.get("CAIRN_INTEROP") == "full"
    folder = args.folder.resolve()
    suite = unittest.TestSuite()
    for suite_name in [args.suite] if args.suite else SUITES:
        for kernel in KERNELS if full else SHORT_KERNELS:
            for tests in SUITES[suite_name](full, kernel, program=args.program.resolve(),
                                            guests=folder / "guests"):
                tests.__qualname__ = f"{tests.__name__}.{kernel}"
                tests.folder = folder / f"{tests.__name__}-{kernel}"
                suite.addTests(loader.loadTestsFromTestCase(tests))
    return suite


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", choices=SUITES, help="only this one")
    parser.add_argument("--program", type=pathlib.Path, default=BUILD / "apps/cairn",
                        help="the cairn to test")
    parser.add_argument("--folder", type=pathlib.Path, default=BUILD / "interop",
                        help="for guests and logs")
    parser.add_argument("-k", action="append", metavar="TEXT", help="only tests named like it")
    parser.add_argument("-v", action="store_const", const=2, default=1, help="name each test")
    args = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # guests end with us
    suite = make_suite(args, [f"*{text}*" for text in args.k] if args.k else None)
    result = unittest.TextTestRunner(verbosity=args.v).run(suite)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
