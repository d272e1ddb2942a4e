# SPDX-License-Identifier: Apache-2.0
"""What tests with two machines share: this one, and one with arm64 that qemu emulates."""

import argparse
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import support  # noqa: E402

options = argparse.Namespace()


class OnArm:
    """Mixed into a CliTest: `with self.on_arm():` cairns that are run or started are arm64's."""

    _is_arm = False

    @contextlib.contextmanager
    def on_arm(self):
        self._is_arm = True
        try:
            yield
        finally:
            self._is_arm = False

    def command(self, args, denied=None):
        if not self._is_arm:
            return super().command(args, denied)
        self.assertIsNone(denied)
        return [*emulator(), str(options.arm / "apps/cairn-lab"), *map(str, args)]


def emulator():
    """What comes before a program for arm64."""
    return ["qemu-aarch64", "-L", str(options.arm / "sysroot")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arm", required=True, help="the build folder of the preset arm64",
                        type=lambda path: pathlib.Path(os.path.abspath(path)))
    parser.add_argument("--here", help="this machine's trace_hashes", type=os.path.abspath)
    rest = parser.parse_known_args(namespace=options)[1]
    sys.argv[1:] = rest
    support.main()
