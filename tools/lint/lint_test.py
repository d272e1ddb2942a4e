#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each lint accepts its passing sample and says exactly the expected words about its failing one.

samples/NAME/ holds the trees pass/ and fail/, and fail.expected: what NAME.py prints about fail/.
After a change of wording, read the new output before it becomes the expected one (OPTIONS apply):

    tools/lint/NAME.py --root tools/lint/samples/NAME/fail > tools/lint/samples/NAME/fail.expected
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE / "samples"
LINTS = ("banned", "coroutines", "format", "headers", "layers", "layouts", "links", "rooms",
         "sim_tests", "size", "spdx")
OPTIONS = {"rooms": ["--max-files", "3"], "size": ["--max-lines", "6"]}

sys.path.insert(0, str(HERE))
import banned  # noqa: E402
import common  # noqa: E402
import headers  # noqa: E402
import layers  # noqa: E402


def run(lint, root):
    command = [sys.executable, "-B", HERE / f"{lint}.py", "--root", root, *OPTIONS.get(lint, [])]
    return subprocess.run(command, capture_output=True, text=True)


class Samples(unittest.TestCase):
    maxDiff = None

    def test_passing_samples_pass_in_silence(self):
        for lint in LINTS:
            with self.subTest(lint):
                result = run(lint, SAMPLES / lint / "pass")
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_failing_samples_fail_with_every_finding_named(self):
        for lint in LINTS:
            with self.subTest(lint):
                result = run(lint, SAMPLES / lint / "fail")
                expected = (SAMPLES / lint / "fail.expected").read_text()
                self.assertEqual((result.returncode, result.stdout, result.stderr),
                                 (1, expected, ""))

    def test_every_banned_class_has_a_failing_call_name_and_header(self):
        expected = (SAMPLES / "banned" / "fail.expected").read_text()
        for rule in banned.RULES:
            with self.subTest(rule.name):
                self.assertIn(f"({rule.name}); {rule.instead}", expected)
                if rule.headers:
                    self.assertRegex(expected, rf"<.*> \({rule.name}\)")

    def test_samples_themselves_are_not_linted(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            sample = root / "tools/lint/samples/size/fail/wide.cc"
            sample.parent.mkdir(parents=True)
            sample.write_text("// " + "w" * 200 + "\n")
            self.assertEqual(common.files(root), [])


class HeadersBuiltAlone(unittest.TestCase):
    """A header that the build has compiled alone is not compiled again."""

    def is_left_out(self, source, header="// h\n#pragma once\n", is_built=True):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src/base").mkdir(parents=True)
            (root / "src/base/thing.h").write_text(header)
            (root / "src/base/thing.cc").write_text(source)
            built = {root / "src/base/thing.cc"} if is_built else set()
            return headers.is_built_alone(root, "src/base/thing.h", built)

    def test_its_source_begins_with_it(self):
        self.assertTrue(self.is_left_out('// c\n#include "base/thing.h"\n#include <map>\n'))

    def test_its_source_includes_something_before_it(self):
        self.assertFalse(self.is_left_out('#include <map>\n#include "base/thing.h"\n'))
        self.assertFalse(self.is_left_out('#include "base/other.h"\n#include "base/thing.h"\n'))

    def test_its_source_includes_nothing(self):
        self.assertFalse(self.is_left_out("int thing;\n"))

    def test_nobody_compiles_its_source(self):
        self.assertFalse(self.is_left_out('#include "base/thing.h"\n', is_built=False))

    def test_it_is_not_guarded(self):
        self.assertFalse(self.is_left_out('#include "base/thing.h"\n', header="int x;\n"))


class LayerTable(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
            table.write(text)
            table.flush()
            return layers.Layers(pathlib.Path(table.name))

    def test_two_lines_for_one_folder_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "src/base is there twice"):
            self.read("src/base 0 cairn\nsrc/base 1 cairn\n")

    def test_a_line_of_no_known_form_is_refused(self):
        for line in ("src/base", "src/base 0", "src/base low cairn", "tests top - src/base"):
            with self.subTest(line), self.assertRaisesRegex(SystemExit, "cannot read"):
                self.read(line + "\n")

    def test_worlds_without_the_layer_that_they_may_include_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "has worlds and no src/env"):
            self.read("src/world/sim world cairn::sim\n")

    def test_a_folder_is_judged_by_the_nearest_one_around_it(self):
        table = self.read("src/meta 1 cairn::meta\nsrc/meta/etcd 2 cairn::meta::etcd\n")
        self.assertEqual(table.nearest("src/meta/etcd/deep"), "src/meta/etcd")
        self.assertEqual(table.nearest("src/meta/other"), "src/meta")
        self.assertIsNone(table.nearest("src/metadata"))


class CodeOnly(unittest.TestCase):
    def test_literals_and_comments_become_blanks_of_the_same_size(self):
        for text, code in (
                ('f("open(x)");', "f(         );"),
                ("a // read(", "a         "),
                ("a /* b\nc */ d", "a     \n     d"),
                ("1'000'000 + 'a'", "1'000'000 +    "),
                ('R"x(" )" )x" y', "             y"),
                ('"\\"" z', "     z"),
                ("#include <x>\ny", "            \ny")):
            with self.subTest(text):
                self.assertEqual(common.code_only(text), code)


if __name__ == "__main__":
    unittest.main()
