#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes and hosts through TLS, with each other and with software that is not ours."""

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import threading
import unittest

import support
from box_support import NQN, BoxTest

HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
OTHER = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555"

CONFIG = """
[[listener]]
address = "127.0.0.1:0"
tls = "required"

[[listener]]
address = "127.0.0.1:0"

[[subsystem]]
nqn = "{nqn}"
hosts = ["{other}"]

[[subsystem.host]]
nqn = "{host}"
tls_key = "host.key"
{more}

[[subsystem.namespace]]
drive = "mem:size=1M"
"""

OPENSSL = shutil.which("openssl")
NVME = shutil.which("nvme") or shutil.which("nvme", path="/usr/sbin:/sbin")


def derive(key, label, context, size):
    """HKDF-Expand-Label(HKDF-Extract(0, key), label, context), RFC 5869 and RFC 8446."""
    name = {32: "sha256", 48: "sha384"}[size]
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + bytes([len(context)]) + context
    extracted = hmac.new(bytes(size), key, name).digest()
    return hmac.new(extracted, info + b"\1", name).digest()


def identity_and_psk(text, host, nqn):
    """What NVMe/TCP 1.1, 3.6.1.3, makes of a key's text: version 0."""
    key = base64.b64decode(text.strip().split(":")[2])[:-4]
    retained = derive(key, b"HostNQN", host.encode(), len(key))
    identity = f"NVMe0R0{1 if len(key) == 32 else 2} {host} {nqn}"
    return identity, derive(retained, b"nvme-tls-psk", identity.encode(), len(key)).hex()


def ic_pdu(kind):
    """An ICReq (0) or ICResp (1) that asks for nothing special."""
    max_data = struct.pack("<I", 131072 if kind == 1 else 0)
    return struct.pack("<BBBBI", kind, 0, 128, 0, 128) + bytes(4) + max_data + bytes(112)


class Keys(BoxTest):
    def make_key(self, name, *args):
        self.run_ok("key", "new", "tls", "--output", str(self.folder / name), *args)
        return self.folder / name

    def test_a_key_is_printed_in_its_usual_form(self):
        for args, start, size in (((), "01", 48), (("--hmac", "1"), "01", 48),
                                   (("--hmac", "2"), "02", 72), (("--hmac", "sha384"), "02", 72)):
            said = self.run_ok("key", "new", "tls", *args)
            self.assertRegex(said, rf"^NVMeTLSkey-1:{start}:[A-Za-z0-9+/=]{{{size}}}:\n$")
        self.expect_usage(["key", "new", "tls", "--hmac", "3"], "1 (sha256) or 2 (sha384)")

    def test_a_file_is_its_owners_alone(self):
        key = self.make_key("a.key")
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        self.expect_sentence(self.run_cairn("key", "new", "tls", "--output", str(key)), 1, "exists")
        os.chmod(key, 0o640)
        self.expect_sentence(self.run_cairn("key", "inspect", str(key)), 1, "mode 0640",
                             "chmod 600")

    def test_check_says_what_it_is_and_shows_nothing_secret(self):
        key = self.make_key("a.key", "--hmac", "2")
        said = self.run_ok("key", "inspect", str(key), "--nqn", NQN, "--hostnqn", HOST)
        self.assertIn("48 bytes for sha384", said)
        self.assertIn(f"identity 0: NVMe0R02 {HOST} {NQN}\n", said)
        self.assertRegex(said, rf"identity 1: NVMe1R02 {HOST} {NQN} [A-Za-z0-9+/]{{64}}\n")
        self.assertNotIn(key.read_text().split(":")[2][:20], said)
        found = json.loads(self.run_ok("key", "inspect", str(key), "--json"))
        self.assertEqual((found["hash"], found["bytes"]), ("sha384", 48))
        self.run_ok("key", "new", "auth", "--output", str(self.folder / "other.key"))
        self.expect_sentence(
            self.run_cairn("key", "inspect", str(self.folder / "other.key")), 1,
            "holds no key", "NVMeTLSkey-1:01", "cairn key new tls")

    @unittest.skipUnless(NVME, "there is no nvme-cli")
    def test_keys_are_those_of_nvme_cli(self):
        for hmac_id in ("1", "2"):
            theirs = subprocess.run([NVME, "gen-tls-key", "--hmac", hmac_id], check=True,
                                    capture_output=True, text=True).stdout
            path = self.folder / f"theirs{hmac_id}.key"
            path.write_text(theirs)
            os.chmod(path, 0o600)
            self.run_ok("key", "inspect", str(path))
            ours = self.make_key(f"ours{hmac_id}.key", "--hmac", hmac_id).read_text().strip()
            said = subprocess.run([NVME, "check-tls-key", "--key", ours], check=True,
                                  capture_output=True, text=True).stdout
            self.assertRegex(said, r"(?i)key is valid")


class Encrypted(BoxTest):
    def setUp(self):
        super().setUp()
        for name in ("host.key", "other.key"):
            self.run_ok("key", "new", "tls", "--output", str(self.folder / name))
        self.run_ok("key", "new", "auth", "--output", str(self.folder / "auth.key"))

    def serve(self, more=""):
        self.write("box.toml", CONFIG.format(nqn=NQN, host=HOST, other=OTHER, more=more))
        self.box = self.start(["serve", "--config", "box.toml"], cwd=self.folder)
        self.plain_port = int(re.findall(r"(?m)^serving \S+ at \S+:(\d+)$", self.box.said)[1])

    def uri(self, key="host.key", host=HOST, port=None, more="", nqn=NQN):
        text = f"nvme-tcp://127.0.0.1:{port or self.box.port}/{nqn}?hostnqn={host}{more}"
        return text + (f"&tls=required&tls_key={self.folder}/{key}" if key else "")

    def doctor(self, place, *args):
        """Exit status and {step: outcome} of `cairn doctor tls`."""
        result = self.run_cairn("doctor", "tls", place, "--json", *args)
        steps = json.loads(result.stdout)["steps"]
        return result.returncode, {each["name"]: each["outcome"] for each in steps}

    def failed(self, place):
        status, steps = self.doctor(place)
        failed = [name for name, outcome in steps.items() if outcome == "fail"]
        self.assertEqual((status, len(failed)), (1, 1), steps)
        return failed[0]

    def test_every_verb_goes_through(self):
        self.serve()
        data = self.write("data", "some bytes, not for all eyes...\n" * 4096)
        self.run_ok("nvme", "write", self.uri(), "--input", str(data), "--length", "128K")
        back = self.folder / "back"
        self.run_ok("nvme", "read", self.uri(), "--output", str(back), "--length", "128K")
        self.assertEqual(back.read_bytes(), data.read_bytes())
        self.run_ok("nvme", "list", self.uri(more="&tls_identity=0"))
        self.run_ok("nvme", "verify", self.uri(more="&queues=2&hdgst=on&ddgst=on"), "--size", "1M",
                    "--seconds", "0.2")
        self.assertIn("connections encrypted, 0 refused", self.run_ok("drive", "stats"))

    def test_authentication_goes_on_inside(self):
        self.serve(more='key = "auth.key"')
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri()), 1, "no key for it")
        self.run_ok("nvme", "id-ns", self.uri(more=f"&dhchap_key={self.folder}/auth.key"))

    def test_others_stay_out_and_the_box_notes_it(self):
        self.serve()
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri("other.key")), 1,
                             "have no TLS key in common", "unknown_psk_identity", "tls_key")
        self.expect_sentence(
            self.run_cairn("nvme", "id-ns", self.uri("other.key", more="&tls_identity=0")), 1,
            "have no TLS key in common")
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri(host=OTHER)), 1,
                             "have no TLS key in common")
        self.assertIn(f"{HOST} at 127.0.0.1:", self.box.log)
        self.assertIn("the host has another TLS key", self.box.log)
        self.assertEqual(self.ask("drive", "stats")["tls"]["failed"], 3)
        secret = (self.folder / "host.key").read_text().split(":")[2]
        self.assertNotIn(secret[:20], self.box.log)

    def test_tls_at_one_end_only_is_named_at_both(self):
        self.serve()
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri(key=None)), 1, "demands TLS",
                             "tls=required&tls_key=FILE")
        self.expect_sentence(self.run_cairn("nvme", "id-ns", self.uri(port=self.plain_port)), 1,
                             "speaks plain NVMe/TCP, without TLS")
        self.assertIn("it speaks plain NVMe/TCP, and this listener demands TLS", self.box.log)
        self.assertEqual(self.ask("drive", "stats")["tls"]["failed"], 2)

    def test_discovery_tells_which_port_demands_it(self):
        self.serve()
        place = f"nvme-tcp://127.0.0.1:{self.plain_port}?hostnqn={HOST}"
        service = json.loads(self.run_ok("nvme", "discover", place, "--json"))
        text = json.dumps(service)
        self.assertIn('"tls13"', text)
        said = self.run_ok("nvme", "discover", place)
        self.assertRegex(said, rf"(?m)^nvme subsystem .* {self.box.port} .*[?&]tls=required$")

    def test_mistakes(self):
        self.expect_sentence(
            self.run_cairn("serve", "mem:size=1M", "--tls", "required"), 1,
            "demands TLS, and no host has a key", "key new tls")
        self.expect_usage(["serve", "mem:size=1M", "--tls", "maybe"],
                          "required or refused")
        self.expect_sentence(self.run_cairn("serve", "mem:size=1M", "--tls-key", "x"), 1,
                             "HOSTNQN=FILE")
        uri = f"nvme-tcp://127.0.0.1:1/{NQN}?"
        self.expect_usage(["nvme", "list", uri + "tls=required"], "tls_key=FILE")
        self.expect_usage(["nvme", "list", uri + "tls_key=x"], "tls=required")
        self.expect_usage(["nvme", "list", uri + "tls=on"], "'required'")
        self.expect_usage(["nvme", "list", uri + "tls=required&tls_key=NVMeTLSkey-1:01:x:"],
                          "name of a file")

    def test_the_command_line_is_enough(self):
        self.box = self.start_box("mem:size=1M", "--tls", "required", "--tls-key",
                                  f"{HOST}={self.folder}/host.key")
        self.assertIn("--tls\n", self.box.said)
        self.run_ok("nvme", "id-ns", self.uri())

    def test_the_doctor_names_the_step(self):
        self.serve()
        status, steps = self.doctor(self.uri())
        self.assertEqual(status, 0, steps)
        self.assertEqual(set(steps.values()), {"pass"})
        self.assertEqual(list(steps), ["resolve", "key file", "connect", "tls", "version", "cipher",
                                       "identity", "key", "greeting", "session"])
        self.assertEqual(self.failed(self.uri(port=self.plain_port)), "tls")
        self.assertEqual(self.failed(self.uri(host=OTHER)), "identity")
        self.assertEqual(self.failed(self.uri("other.key")), "identity")
        self.assertEqual(self.failed(self.uri("other.key", more="&tls_identity=0")), "key")
        self.assertEqual(self.failed(f"127.0.0.1:{self.box.port}"), "identity")
        self.assertEqual(self.failed(self.uri("nowhere.key")), "key file")
        self.assertEqual(self.failed("nvme-tcp://no.such.name.invalid/" + NQN), "resolve")
        text = self.run_cairn("doctor", "tls", self.uri(host=OTHER)).stdout
        self.assertRegex(text, r"(?m)^FAIL  identity  it does not know 'NVMe1R01")
        self.assertIn("next: give the target the key", text)
        self.box.stop()
        self.assertEqual(self.failed(self.uri()), "connect")


@unittest.skipUnless(OPENSSL, "there is no openssl")
class WithOpenssl(BoxTest):
    """The handshake, with the other implementation's ends and a derivation of our tests' own."""

    def setUp(self):
        super().setUp()
        self.run_ok("key", "new", "tls", "--output", str(self.folder / "host.key"))
        text = (self.folder / "host.key").read_text()
        self.identity, self.psk = identity_and_psk(text, HOST, NQN)

    def test_its_client_against_our_box(self):
        box = self.start_box("mem:size=1M", "--tls", "required", "--tls-key",
                             f"{HOST}={self.folder}/host.key")
        client = [OPENSSL, "s_client", "-tls1_3", "-connect", f"127.0.0.1:{box.port}",
                  "-psk_identity", self.identity]
        talk = subprocess.Popen([*client, "-psk", self.psk, "-quiet"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(talk.kill)
        talk.stdin.write(ic_pdu(0))
        talk.stdin.flush()
        answer = talk.stdout.read(128)
        self.assertEqual((answer[0], answer[2], len(answer)), (1, 128, 128), "ICResp")
        talk.kill()
        talk.communicate()
        said = subprocess.run([*client, "-psk", self.psk, "-brief"], input=b"", check=False,
                              capture_output=True)
        self.assertIn(b"TLS_AES_128_GCM_SHA256", said.stderr)
        wrong = subprocess.run([*client, "-psk", "00" * 32], input=b"", check=False,
                               capture_output=True)
        self.assertIn(b"alert illegal parameter", wrong.stderr)
        stranger = [*client[:-1], f"NVMe0R01 {OTHER} {NQN}"]
        unknown = subprocess.run([*stranger, "-psk", self.psk], input=b"", check=False,
                                 capture_output=True)
        self.assertIn(b"unknown psk identity", unknown.stderr)
        old = [each if each != "-tls1_3" else "-tls1_2" for each in client]
        refused = subprocess.run(old, input=b"", check=False, capture_output=True)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"alert protocol version", refused.stderr)

    def test_its_client_may_ask_for_new_keys(self):
        box = self.start_box("mem:size=1M", "--tls", "required", "--tls-key",
                             f"{HOST}={self.folder}/host.key")
        talk = subprocess.Popen(
            [OPENSSL, "s_client", "-tls1_3", "-connect", f"127.0.0.1:{box.port}", "-psk_identity",
             self.identity, "-psk", self.psk], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0)
        self.addCleanup(talk.communicate)
        self.addCleanup(talk.kill)
        for _ in range(3):
            talk.stdin.write(b"K\n")
            while b"KEYUPDATE" not in talk.stderr.readline():
                self.assertIsNone(talk.poll())
        talk.stdin.write(ic_pdu(0))
        heard = b""
        while not heard.endswith(ic_pdu(1)[:8]):
            more = talk.stdout.read(1)
            self.assertEqual(len(more), 1, "it ended before ICResp")
            heard += more

    def answer_greetings(self, server):
        """ICResp for each ICReq among what the server says; kills it when a Connect comes."""
        heard = b""
        while len(more := server.stdout.read(1)) == 1:
            heard += more
            if heard.endswith(ic_pdu(0)):
                server.stdin.write(ic_pdu(1))
                server.stdin.flush()
            if heard.endswith(b"\x04\x00\x48\x48"):  # type, flags, header and data of a capsule
                server.kill()

    def test_our_host_against_its_server(self):
        server = subprocess.Popen(
            [OPENSSL, "s_server", "-tls1_3", "-accept", "127.0.0.1:0", "-nocert",
             "-psk", self.psk, "-psk_identity", self.identity],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        line = b""
        while not line.startswith(b"ACCEPT"):
            line = server.stdout.readline()
        port = int(line.rpartition(b":")[2])
        answering = threading.Thread(target=self.answer_greetings, args=(server,))
        answering.start()
        uri = (f"nvme-tcp://127.0.0.1:{port}/{NQN}?hostnqn={HOST}&tls=required&tls_identity=0"
               f"&tls_key={self.folder}/host.key")
        result = self.run_cairn("doctor", "tls", uri, "--json")
        server.kill()
        answering.join()
        steps = {each["name"]: each["outcome"] for each in json.loads(result.stdout)["steps"]}
        self.assertEqual([name for name, outcome in steps.items() if outcome == "pass"],
                         ["resolve", "key file", "connect", "tls", "version", "cipher", "identity",
                          "key", "greeting"], result.stdout)
        self.assertEqual(steps["session"], "fail")


if __name__ == "__main__":
    support.main()
