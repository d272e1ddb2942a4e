#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rack's metadata in an etcd that demands certificates, and those whose do not fit."""

import os
import pathlib
import shutil
import unittest

import support
from rack_support import ETCD, MIB, RackTest

MISSING = [each for each in ("openssl", ETCD)
           if shutil.which(each) is None and not pathlib.Path(each).exists()]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Certificates(RackTest):
    def setUp(self):
        super().setUp()
        self.make_ca("ca")
        self.make_ca("other")
        self.certify("box", "extendedKeyUsage=clientAuth\n")

    def make_key(self, name):
        self.run_tool("openssl", "req", "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key", "-subj",
                      f"/CN={name}", "-out", f"{name}.csr")
        os.chmod(self.folder / f"{name}.key", 0o600)

    def make_ca(self, name):
        self.make_key(name)
        self.write(f"{name}.ext", "basicConstraints=critical,CA:TRUE\n")
        self.run_tool("openssl", "x509", "-req", "-in", f"{name}.csr", "-signkey", f"{name}.key",
                      "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def certify(self, name, extensions, ca="ca", days="2"):
        """NAME.key and NAME.pem, signed by that CA. Of no days: it ends the moment it begins."""
        self.make_key(name)
        self.write(f"{name}.ext", extensions)
        self.run_tool("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem",
                      "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", days, "-extfile",
                      f"{name}.ext", "-out", f"{name}.pem")

    def query(self, ca="ca", client="box", more=""):
        shown = f"&cert={self.folder}/{client}.pem&key={self.folder}/{client}.key" if client else ""
        return f"?ca={self.folder}/{ca}.pem{shown}{more}"

    def start_secure(self, names="IP:127.0.0.1", query=None, days="2", until=None):
        # The gateway in etcd is a client of etcd's own.
        self.certify("etcd", f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n",
                     days=days)
        return self.start_etcd("--client-cert-auth", f"--trusted-ca-file={self.folder}/ca.pem",
                               f"--cert-file={self.folder}/etcd.pem",
                               f"--key-file={self.folder}/etcd.key", scheme="https",
                               query=query or self.query(), until=until)

    def expect_refusal(self, meta, *parts):
        self.expect_sentence(self.run_cairn("rack", "drives", "--rack", meta), 1, *parts)

    def test_drives_are_made_through_tls(self):
        meta = self.start_secure() + self.query()
        self.start_boxes(meta, "a", "b")
        self.create("vm1", meta, "--raid", "1", "--size", "8M")
        self.assertEqual(set(self.offers(meta).values()), {55 * MIB})
        self.run_ok("drive", "release", "vm1", "--rack", meta, "--yes")
        self.assertEqual(self.drives(meta), [])

    def test_whose_certificate_does_not_fit_gets_nowhere(self):
        at = self.start_secure()
        self.expect_refusal(at + self.query(ca="other"),
                            "the peer's certificate is not signed by ours")
        self.expect_refusal(at + self.query(more="&name=etcd.example"),
                            "the peer's certificate is for another name or address")
        self.expect_refusal(at + self.query(client=None), "TLS alert", "certificate")
        self.certify("stranger", "extendedKeyUsage=clientAuth\n", ca="other")
        self.expect_refusal(at + self.query(client="stranger"), "TLS alert", "certificate")
        self.expect_refusal(at, "if it demands TLS, add ?ca=FILE&cert=FILE&key=FILE")
        self.assertEqual(self.drives(at + self.query()), [])

    def test_a_name_instead_of_an_address(self):
        query = self.query(more="&name=etcd.example")
        # The gateway in etcd asks etcd by its address, hence both.
        at = self.start_secure(names="DNS:etcd.example,IP:127.0.0.1", query=query)
        self.assertEqual(self.drives(at + query), [])

    def test_a_certificate_for_another_address(self):
        self.start_secure(names="IP:192.0.2.1",
                          until="the peer's certificate is for another name or address")

    def test_an_expired_certificate(self):
        self.start_secure(days="0", until="the peer's certificate has expired")

    def test_an_etcd_without_tls_says_so(self):
        self.expect_refusal(self.start_etcd() + self.query(),
                            "hung up at the first words of TLS")

    def test_files_that_cannot_be_used_are_named(self):
        at = "etcd://127.0.0.1:1"
        os.chmod(self.folder / "box.key", 0o644)
        self.expect_refusal(at + self.query(), "box.key", "has mode 0644", "chmod 600")
        os.chmod(self.folder / "box.key", 0o600)
        self.expect_refusal(at + self.query(ca="missing"), "missing.pem")
        shutil.copy(self.folder / "other.key", self.folder / "box.key")
        self.expect_refusal(at + self.query(), "the private key is not that of the certificate")
        self.expect_usage(["rack", "drives", "--rack", at + "?cert=a&key=b"], "without ca=FILE")


if __name__ == "__main__":
    support.main()
