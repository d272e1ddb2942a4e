#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fio's engine over libcairn: compiled against fio's source, used with data that fio checks."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "cli"), str(TESTS / "rest")]

import nginx_support  # noqa: E402
import support  # noqa: E402
from box_support import NQN, BoxTest  # noqa: E402

_options = argparse.Namespace()


def why_not():
    """Why fio's engine cannot be compiled here; empty: it can."""
    if shutil.which("fio") is None:
        return "fio is not installed"
    if not (_options.fio_source / "config-host.h").exists():
        return "the source of fio is not there: tools/fio_source says why"
    return ""


class Engine(BoxTest):
    def setUp(self):
        super().setUp()
        if why_not():
            self.skipTest(why_not())
        source = TESTS.parent / "lib" / "fio" / "cairn_fio.c"
        self.engine = self.folder / "cairn_fio.so"
        fio = _options.fio_source
        subprocess.run([_options.compiler, "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall",
                        "-Werror", "-include", fio / "config-host.h", "-isystem", fio,
                        f"-I{TESTS.parent / 'include'}", "-o", self.engine, source,
                        f"-L{_options.library}", "-lcairn", f"-Wl,-rpath,{_options.library}"],
                       check=True, timeout=100)

    def fio(self, *args):
        return subprocess.run(
            ["fio", "--name=job", f"--ioengine=external:{self.engine}", *args,
             "--output-format=json"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=100, check=False)

    def verified(self, uri, *args):
        """Random writes over the drive, each block read back and compared by fio."""
        ran = self.fio(f"--uri={uri}", "--rw=randwrite", "--bs=16k", "--size=6M", "--iodepth=16",
                       "--verify=crc32c", "--verify_fatal=1", "--fsync=32", *args)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        job = json.loads(ran.stdout[ran.stdout.index("{"):])["jobs"][0]
        self.assertEqual(job["error"], 0)
        self.assertEqual(job["write"]["io_bytes"], 6 << 20)
        self.assertEqual(job["read"]["io_bytes"], 6 << 20)

    def test_memory_and_files(self):
        self.verified("mem:size=6M")
        self.verified("file:d0,size=8M,direct=off", "--durable=1")
        self.verified("mirror(file:d1,size=8M,direct=off, file:d2,size=8M,direct=off)", "--thread")

    def test_a_box_over_nvme_tcp(self):
        box = self.start_box("mem:size=8M")
        self.verified(f"nvme-tcp://127.0.0.1:{box.port}/{NQN}")
        self.assertEqual(box.stop(), 0)

    @unittest.skipIf(nginx_support.find_nginx() is None, "nginx with WebDAV is not installed")
    def test_nginx(self):
        nginx = nginx_support.Nginx(self, self.folder / "nginx")
        self.verified(f"{nginx.url}/v/d0?size=8M")

    def test_trims(self):
        ran = self.fio("--uri=mem:size=8M", "--rw=randtrim", "--bs=64k", "--size=8M")
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_mistakes_are_told(self):
        for uri, message in (("nonsense", "neither a service nor a drive"),
                             ("file:/nowhere/d", "/nowhere/d")):
            ran = self.fio(f"--uri={uri}", "--rw=read", "--size=1M")
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(message, ran.stdout)
        ran = self.fio("--rw=read", "--size=1M")
        self.assertIn("Give --uri", ran.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, type=os.path.abspath)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--fio-source", required=True, type=pathlib.Path)
    sys.argv[1:] = parser.parse_known_args(namespace=_options)[1]
    support.main()
