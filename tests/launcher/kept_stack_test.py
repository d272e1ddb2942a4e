#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/kept_stack on LLVM's text that is written here, as clang 19 writes it for arm64."""

import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools/kept_stack"

# The address of an array, as the first half of a span that is passed as two integers, is kept in
# the frame; the array is not.
KEPT = """
define void @_Z4lendv(ptr %frame) {
entry:
  %all = alloca [24 x ptr], align 8
  %0 = ptrtoint ptr %all to i64
  %span.spill.addr = getelementptr inbounds i8, ptr %frame, i64 736
  store i64 %0, ptr %span.spill.addr, align 8
  ret void
}
"""
# The same of an array that lies in the frame, beside one that is used without a suspension.
IN_FRAME = """
define void @_Z4lendv(ptr %frame) {
entry:
  %other = alloca [24 x ptr], align 8
  %all.reload.addr = getelementptr inbounds i8, ptr %frame, i64 64
  %0 = ptrtoint ptr %all.reload.addr to i64
  %span.spill.addr = getelementptr inbounds i8, ptr %frame, i64 736
  store i64 %0, ptr %span.spill.addr, align 8
  call void @use(ptr %other)
  ret void
}
"""
# By way of a loop, whose phi comes before what it is of, and of two lanes that are stored at once.
BY_WAYS = """
define void @"lend.resume"(ptr %frame) {
entry:
  %all = alloca [24 x ptr], align 8
  br label %loop
loop:
  %at = phi ptr [ %next, %loop ], [ %all, %entry ]
  %next = getelementptr inbounds i8, ptr %at, i64 8
  %0 = insertelement <2 x ptr> poison, ptr %next, i64 0
  %at.spill.addr = getelementptr inbounds i8, ptr %frame, i64 16
  store <2 x ptr> %0, ptr %at.spill.addr, align 8
  br label %loop
}
"""


class KeptStack(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory(prefix="cairn-kept-") as folder:
            path = pathlib.Path(folder) / "source.ll"
            path.write_text(text)
            return subprocess.run([PROGRAM, "--listing", path], capture_output=True, text=True)

    def test_an_address_of_the_stack_in_a_frame_is_named(self):
        result = self.run_on(KEPT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("keeps the address of %all on its stack", result.stdout)
        self.assertIn("lend", result.stdout)

    def test_what_lies_in_the_frame_may_be_kept_there(self):
        result = self.run_on(IN_FRAME)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_no_way_from_the_stack_to_the_frame_is_missed(self):
        result = self.run_on(BY_WAYS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("lend.resume", result.stdout)

    def test_a_folder_that_is_not_configured_is_refused_with_what_to_do(self):
        with tempfile.TemporaryDirectory(prefix="cairn-kept-") as folder:
            result = subprocess.run([PROGRAM, "--build", folder], capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn("configure that folder first", result.stderr)


if __name__ == "__main__":
    unittest.main()
