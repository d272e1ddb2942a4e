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
    def run_tool(self, *args, status=0):
        result = subprocess.run([*map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
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
        args = [word for command in commands for word in ("-c", command)]
        said = self.run_tool("qemu-io", "-f", "raw", *args, self.uri())
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

    def openssl(self, *args):
        return self.run_tool("openssl", *args)

    def certificate(self, name, subject, ca=None):
        """NAME.key and NAME.pem, signed by the CA of that name or by itself."""
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", f"{name}.key", "-subj", f"/CN={subject}", "-out", f"{name}.csr")
        self.write("extensions", f"subjectAltName=DNS:{subject},IP:127.0.0.1\n" if ca else
                                 "basicConstraints=critical,CA:TRUE\n")
        signer = (["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial"] if ca else
                  ["-signkey", f"{name}.key"])
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-days", "2", *signer, "-extfile",
                     "extensions", "-out", f"{name}.pem")
        os.chmod(self.folder / f"{name}.key", 0o600)

    def folder_for(self, ca, client=None):
        """What a client trusts, and what it shows."""
        folder = self.folder / f"pki-{ca}-{client}"
        folder.mkdir()
        shutil.copy(self.folder / f"{ca}.pem", folder / "ca-cert.pem")
        if client:
            shutil.copy(self.folder / f"{client}.pem", folder / "client-cert.pem")
            shutil.copy(self.folder / f"{client}.key", folder / "client-key.pem")
        return folder

    @unittest.skipIf(shutil.which("openssl") is None, "not installed: openssl")
    def test_certificates_prove_the_server_and_its_clients(self):
        for name in ("ca", "stranger"):
            self.certificate(name, name)
        self.certificate("server", "localhost", "ca")
        self.certificate("alice", "alice", "ca")
        self.certificate("eve", "eve", "stranger")
        shown = ("--tls-cert", "server.pem", "--tls-key", "server.key")
        running = self.serve("mem:size=8M", *shown)
        self.assertIn("nbds+unix:///d0?socket=", running.said)

        def uri(folder):
            return f"nbds://127.0.0.1:{self.port}/d0?tls-certificates={folder}"
        image = self.image("image", 8 * MIB, seed=4)
        anybody = self.folder_for("ca")
        self.run_tool("nbdcopy", image, uri(anybody))
        self.run_tool("nbdcopy", uri(anybody), "back")
        self.assertEqual(image.read_bytes(), (self.folder / "back").read_bytes())
        self.run_tool("nbdinfo", uri(self.folder_for("stranger")), status=1)
        self.run_tool("nbdinfo", f"nbd://127.0.0.1:{self.port}/d0", status=1)
        self.assertEqual(running.stop(), 0)
        self.serve("mem:size=8M", *shown, "--tls-ca", "ca.pem")
        self.assertIn("with TLS", self.run_tool("nbdinfo", uri(self.folder_for("ca", "alice"))))
        self.run_tool("nbdinfo", uri(anybody), status=1)
        self.run_tool("nbdinfo", uri(self.folder_for("ca", "eve")), status=1)
        qemu = self.folder / "pki-ca-alice"
        said = self.run_tool(
            "qemu-img", "info", "--object", f"tls-creds-x509,id=t,dir={qemu},endpoint=client",
            "--image-opts", "driver=nbd,server.type=inet,server.host=127.0.0.1,"
            f"server.port={self.port},export=d0,tls-creds=t")
        self.assertIn("8 MiB", said)

    @unittest.skipIf(shutil.which("openssl") is None, "not installed: openssl")
    def test_certificates_that_do_not_fit_are_told(self):
        self.certificate("ca", "ca")
        self.certificate("other", "other")
        for args, part in (
                (["--tls-cert", "ca.pem"], "a certificate needs its key"),
                (["--tls-cert", "ca.pem", "--tls-key", "other.key"], "not that of the certificate"),
                (["--tls-cert", "ca.key", "--tls-key", "ca.key"], "there is no certificate in it"),
                (["--tls-cert", "ca.pem", "--tls-key", "ca.pem"], "chmod 600"),
                (["--tls-cert", "ca.pem", "--tls-key", "ca.key", "--tls-ca", "ca.csr"],
                 "no certificate of a signer"),
                (["--tls-cert", "none", "--tls-key", "ca.key"], "none")):
            result = self.run_cairn("serve", "mem:size=1M", *args)
            self.expect_sentence(result, 1, part)


if __name__ == "__main__":
    support.main()
