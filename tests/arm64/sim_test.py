#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cairn sim` and `cairn plan` print the same on both machines."""

import re

import arm_support
import support


class SameOutput(arm_support.OnArm, support.CliTest):
    def same(self, *args):
        """Both programs print the same; returns it."""
        here = self.run_ok(*args)
        with self.on_arm():
            self.assertEqual(self.run_ok(*args), here)
        return here

    def test_clusters_under_faults(self):
        said = self.same("sim", "echo", "--faults", "--runs", "8", "--seconds", "2")
        self.assertEqual(len(set(re.findall(r"trace (\w{16})", said))), 8)

    def test_modelled_drives(self):
        for args in (("mix", "--precondition", "80"), ("write", "--profile", "pm1725a")):
            with self.subTest(args):
                self.same("plan", "ssd", "--requests", "3000", "--json", "--synthetic", *args)

    def test_modelled_networks(self):
        for control in ("dcqcn", "dctcp", "cubic"):
            with self.subTest(control):
                self.same("plan", "net", "--control", control, "--json")
        self.same("plan", "net", "--topology", "clos256", "--load", "permutation", "--fluid",
                  "--json")

    def test_drives_and_networks_together(self):
        self.same("plan", "snis", "--synthetic", "F_t_h", "--coupled", "--requests", "1000",
                  "--json")


if __name__ == "__main__":
    arm_support.main()
