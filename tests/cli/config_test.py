#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configuration files good and bad, as `config check` and `--config` see them."""

import os
import random

import support

GOOD = """[runtime]
io = "auto"
cores = [0, 1]
poll = false

[log]
level = "info"
"""


class ConfigCheck(support.CliTest):
    def check(self, text):
        self.write("c.toml", text)
        return self.run_cairn("config", "check", "c.toml")

    def expect_lines(self, text, *lines):
        result = self.check(text)
        self.assertEqual(result.stderr, "".join(f"cairn: {line}\n" if i == 0 else f"{line}\n"
                                                for i, line in enumerate(lines)))
        self.assertEqual(result.returncode, 1)

    def test_good_files(self):
        for text in ("", GOOD, "# nothing\n", GOOD.replace("\n", "\r\n")):
            self.assertEqual(self.check(text).stdout, "c.toml: ok\n")

    def test_unknown_key(self):
        self.expect_lines("[runtime]\npol = true\n",
                          "c.toml:2:1: unknown key 'pol' in [runtime]; did you mean 'poll'? "
                          "(allowed: io, cores, poll, poll_cores, spin, nap)")

    def test_wrong_type(self):
        self.expect_lines("[log]\nlevel = 3\n",
                          "c.toml:2:9: log.level must be one of debug, info, warn, error; "
                          "this is an integer")

    def test_out_of_range(self):
        self.expect_lines("[runtime]\ncores = [0, 9999]\n",
                          "c.toml:2:13: runtime.cores[1] is 9999 (allowed: 0 to 1023)")

    def test_several_mistakes_have_a_line_each(self):
        self.expect_lines("[runtime]\nio = 'x'\npoll = 1\n",
                          "c.toml:2:6: runtime.io is 'x' (allowed: auto, uring, epoll)",
                          "c.toml:3:8: runtime.poll must be true or false; this is an integer")

    def test_bad_toml(self):
        result = self.check("[runtime\nio = 1\n")
        self.expect_sentence(result, 1, "c.toml:1:", "this is not TOML", "mend this line")

    def test_any_bytes_end_in_an_answer(self):
        rng = random.Random(1)
        for size in (1, 10, 1000, 100_000):
            result = self.check(rng.randbytes(size))
            self.expect_sentence(result, 1, "c.toml:")
        for opening in (b"a.", b"[", b"{a=", b"a=[", b"[[a.", b'"', b"'''", b"#"):
            result = self.check(opening * 200_000)
            self.assertIn(result.returncode, (0, 1), opening)


class Files(support.CliTest):
    def expect_refused(self, path, *parts, **options):
        for args in (["config", "check", path], ["up", "--config", path]):
            self.expect_sentence(self.run_cairn(*args, **options), 1, *parts)

    def test_missing(self):
        self.expect_refused("none.toml", "there is no file 'none.toml'", "check the path")

    def test_folder(self):
        self.expect_refused(".", "'.' is a folder", "name the file in it")

    def test_too_large(self):
        self.write("large.toml", "#" * (1 << 20) + "\n")
        self.expect_refused("large.toml", "larger than 1 MiB")
        self.expect_refused("/dev/zero", "larger than 1 MiB")

    def test_largest(self):
        self.write("full.toml", "#" * (1 << 20))
        self.assertEqual(self.run_ok("config", "check", "full.toml"), "full.toml: ok\n")

    def test_unreadable(self):
        path = self.write("secret.toml", GOOD)
        path.chmod(0)
        self.folder.chmod(0o755)
        user = {} if os.getuid() else {"user": 65534}  # root reads everything
        try:
            self.run_cairn("version", **user)
        except PermissionError:
            self.skipTest("the program cannot be run by another user here")
        self.expect_refused("secret.toml", "may not be read by this user", "change its mode",
                            **user)

    def test_not_a_folder_on_the_way(self):
        self.write("file", "")
        self.expect_refused("file/c.toml", "cannot be read (Not a directory)")


if __name__ == "__main__":
    support.main()
