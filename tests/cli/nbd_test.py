#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The NBD door with clients that are not ours: libnbd's tools, qemu's and fio."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import unittest

import support
from nbd_support import DriveTest

MIB = 1 << 20
TOOLS = ("nbdinfo", "nbdcopy", "qemu-img", "qemu-io", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Clients(DriveTest):
    def run_tool(self, *words, status=0):
        result = subprocess.run([*map(str, words)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def image(self, name, size, seed=1):
        """Random bytes with a hole of a third in the middle."""
        part = random.Random(seed).randbytes(size // 3)
        return self.write(name, part + bytes(size - 2 * len(part)) + part)

    def tcp(self, name):
        return f"nbd://127.0.0.1:{self.port}/{name}"

    def test_nbdinfo_knows_every_export(self):
        self.serve("mem:size=1M", "data=file:d,size=2M", "--read-only")
        told = json.loads(self.run_tool("nbdinfo", "--json", "--list", self.tcp("")))
        exports = {each["export-name"]: each for each in told["exports"]}
        self.assertEqual(sorted(exports), ["d0", "data"])
        self.assertEqual(exports["data"]["export-size"], 2 * MIB)
        self.assertTrue(exports["data"]["is_read_only"])
        self.assertTrue(exports["d0"]["can_multi_conn"])
        self.run_tool("nbdinfo", self.uri("none"), status=1)

    def test_nbdcopy_brings_back_what_it_took(self):
        self.serve("mem:size=24M", "data=file:d,size=24M")
        image = self.image("image", 24 * MIB)
        for uri in (self.uri("d0"), self.tcp("data")):
            self.run_tool("nbdcopy", "--connections=4", image, uri)
            self.run_tool("nbdcopy", "--connections=4", uri, "back")
            self.assertEqual(image.read_bytes(), (self.folder / "back").read_bytes())
        self.assertEqual(image.read_bytes(), (self.folder / "d").read_bytes())
        maps = json.loads(self.run_tool("nbdinfo", "--json", "--map", self.uri()))
        self.assertEqual([each["type"] for each in maps], [0, 2, 0])
        self.assertEqual(sum(each["length"] for each in maps), 24 * MIB)

    def test_qemu_img_converts_and_compares(self):
        self.serve("mem:size=24M", "data=file:d,size=24M,block=512")
        image = self.image("image", 24 * MIB, seed=2)
        for uri in (self.uri("d0"), self.tcp("data")):
            self.run_tool("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, uri)
            said = self.run_tool("qemu-img", "compare", "-f", "raw", "-F", "raw", image, uri)
            self.assertIn("identical", said)
            self.run_tool("qemu-img", "convert", "-f", "raw", "-O", "qcow2", uri, "image.qcow2")
            self.run_tool("qemu-img", "compare", "-f", "raw", "-F", "qcow2", image, "image.qcow2")

    def test_qemu_io_writes_zeroes_and_discards_at_any_offset(self):
        self.serve("mem:size=24M")
        commands = ("write -P 7 1000 3000", "read -P 7 1000 3000", "read -P 0 0 1000",
                    "write -f -P 9 1M 9M", "read -P 9 1M 9M", "write -z 1500000 70000",
                    "read -P 0 1500000 70000", "read -P 9 1570000 1000", "write -z -u 2M 1M",
                    "read -P 0 2M 1M", "discard 4M 1M", "flush", "aio_write -P 3 12M 1M",
                    "aio_write -P 4 13M 64k", "aio_flush", "read -P 3 12M 1M", "read -P 4 13M 64k")
        words = [word for command in commands for word in ("-c", command)]
        said = self.run_tool("qemu-io", "-f", "raw", *words, self.uri())
        self.assertNotIn("failed", said)
        said = self.run_tool("qemu-io", "-f", "raw", "-c", "read 23M 2M", self.uri(), status=1)
        self.assertIn("error", said)

    def test_fio_verifies_what_it_wrote(self):
        engines = subprocess.run(["fio", "--enghelp"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.split()
        if "nbd" not in engines:
            self.skipTest("this fio has no nbd engine")
        self.serve("mem:size=16M", "data=file:d,size=16M")
        for uri in (self.uri("d0"), self.tcp("data")):
            self.run_tool("fio", "--name=verify", "--ioengine=nbd", f"--uri={uri}",
                          "--rw=randwrite", "--bsrange=512-64k", "--bs_unaligned",
                          "--iodepth=32", "--size=16M", "--verify=crc32c", "--verify_fatal=1",
                          "--randseed=7")

    def keys(self, name, user, digit):
        path = self.write(name, f"{user}:{digit * 64}\n")
        os.chmod(path, 0o600)
        return path

    def test_tls_takes_those_with_a_key_and_nobody_else(self):
        keys = self.keys("keys.psk", "alice", "5")
        self.serve("mem:size=24M", "--tls-psk", keys)
        image = self.image("image", 24 * MIB, seed=3)
        uri = f"nbds+unix://alice@/d0?socket={self.socket}&tls-psk-file={keys}"
        self.assertIn("with TLS", self.run_tool("nbdinfo", uri))
        self.run_tool("nbdcopy", image, uri)
        self.run_tool("nbdcopy", uri, "back")
        self.assertEqual(image.read_bytes(), (self.folder / "back").read_bytes())
        qemu = pathlib.Path(self.folder / "qemu")
        qemu.mkdir()
        shutil.copy(keys, qemu / "keys.psk")
        said = self.run_tool(
            "qemu-img", "compare", "--object",
            f"tls-creds-psk,id=t,dir={qemu},username=alice,endpoint=client", "--image-opts",
            f"driver=raw,file.driver=file,file.filename={image}",
            "driver=nbd,server.type=inet,server.host=127.0.0.1,"
            f"server.port={self.port},export=d0,tls-creds=t")
        self.assertIn("identical", said)
        self.run_tool("nbdinfo", self.uri(), status=1)
        for user, digit in (("alice", "6"), ("bob", "5")):
            other = self.keys(f"{user}{digit}.psk", user, digit)
            self.run_tool("nbdinfo", f"nbds+unix://{user}@/d0?socket={self.socket}"
                          f"&tls-psk-file={other}", status=1)
        self.assertIn("with TLS", self.run_tool("nbdinfo", uri))


if __name__ == "__main__":
    support.main()
