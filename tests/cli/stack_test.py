#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks at the doors: `cairn serve STACK`, what is added while they are used, local and remote
legs, and what is said about stacks that do not open."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import support
from box_support import NQN, BoxTest
from nbd_support import DriveTest

MIB = 1 << 20
TOOLS = ("nbdinfo", "nbdcopy", "fio")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]


def mirror_data(path):
    """What a leg holds behind its label and bitmap."""
    return pathlib.Path(path).read_bytes()[64 << 10:]


class StackTest(DriveTest, BoxTest):
    def run_tool(self, *args, status=0):
        result = subprocess.run([*map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        self.assertEqual(result.returncode, status, result.stdout)
        return result.stdout

    def nvme(self, *args):
        return self.run_ok("nvme", *args)

    def nvme_port(self, running):
        """Where its NVMe door is, whose subsystem is self.nqn then."""
        door = re.search(r"nvme connect -t tcp -a 127\.0\.0\.1 -s (\d+) -n (\S+)", running.said)
        self.nqn = door[2]
        return int(door[1])

    def place(self, port, nsid=1, nqn=None):
        return f"nvme-tcp://127.0.0.1:{port}/{nqn or self.nqn}?nsid={nsid}"

    def data(self, name, size, salt=0):
        return self.write(name, bytes((i * i >> 3) + (i >> 12) * 7 + salt & 0xff
                                      for i in range(4096)) * (size // 4096))

    def size_of(self, name="d0"):
        return int(self.run_tool("nbdinfo", "--size", self.uri(name)))


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Doors(StackTest):
    def test_both_doors_have_the_same_drive(self):
        cores = support.two_cpus()
        more = ["--cores", cores] if cores else []
        running = self.serve("a=priority(file:a,size=8M)", "b=concat(mem:size=1M, mem:size=1M)",
                             "--nvme-tcp", "127.0.0.1:0", *more)
        port = self.nvme_port(running)
        self.assertIn("serving priority(file:", running.said)
        for nsid, name, size in ((1, "a", 8 * MIB), (2, "b", 2 * MIB)):
            self.assertEqual(self.size_of(name), size)
            written = self.data("in", size, nsid)
            self.run_tool("nbdcopy", "--connections=4", written, self.uri(name))
            self.nvme("read", self.place(port, nsid), "--output", "out")
            self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
            changed = self.data("in", size, nsid + 10)
            self.nvme("write", self.place(port, nsid), "--input", changed)
            self.run_tool("nbdcopy", "--connections=4", self.uri(name), "out")
            self.assertEqual((self.folder / "out").read_bytes(), changed.read_bytes())
        self.assertEqual(running.stop(), 0)
        self.assertEqual(running.log, "")
        kept = self.data("in", 8 * MIB, 11)
        self.assertEqual((self.folder / "a").read_bytes(), kept.read_bytes())

    def test_drives_come_and_go_at_both_doors(self):
        control = ("--control", str(self.folder / "ctl"))
        running = self.serve("a=mem:size=1M", "--nvme-tcp", "127.0.0.1:0", *control)
        port = self.nvme_port(running)
        self.run_ok("drive", "add", "b=priority(mem:size=2M)", *control)
        self.assertEqual(self.size_of("b"), 2 * MIB)
        written = self.data("in", 2 * MIB, 3)
        self.run_tool("nbdcopy", written, self.uri("b"))
        self.nvme("read", self.place(port, 2), "--output", "out")
        self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
        self.run_ok("drive", "resize", "b", "3M", *control)
        self.assertEqual(self.size_of("b"), 3 * MIB)
        again = self.run_cairn("drive", "add", "b=mem:size=1M", *control)
        self.expect_sentence(again, 1, "a drive named 'b' is served here")
        self.run_ok("drive", "remove", "b", "--yes", *control)
        self.run_tool("nbdinfo", "--size", self.uri("b"), status=1)
        self.assertEqual(self.size_of("a"), MIB)
        self.assertEqual(running.stop(), 0)
        self.assertEqual(running.log.count("cairn: error"), 0, running.log)

    def test_a_namespace_keeps_its_ids_by_name(self):
        uuids = []
        for args in (["a=mem:size=1M", "b=priority(mem:size=1M)"],
                      ["b=priority(mem:size=1M)", "a=mem:size=1M"]):
            running = self.serve(*args, "--nvme-tcp", "127.0.0.1:0", "--nqn", NQN)
            port = self.nvme_port(running)
            listed = json.loads(self.nvme("list", self.place(port), "--json"))["namespaces"]
            uuids.append([each["uuid"] for each in listed])
            self.assertEqual(running.stop(), 0)
        self.assertEqual(uuids[0], uuids[1][::-1])
        self.assertNotEqual(*uuids[0])

    def test_a_file_holds_a_stack(self):
        self.write("s.toml", "service = 'stripe'\nchunk = '64K'\n"
                             "below = ['file:a,size=2M', 'limit(file:b,size=2M, iops=9000)']\n")
        self.serve("--file", "wide=s.toml")
        self.assertEqual(self.size_of("wide"), 4 * MIB)
        self.write("bad.toml", "service = 'stripe'\nbelow = ['mem:size=1M', 'frob(mem:)']\n")
        result = self.run_cairn("serve", "--file", "bad.toml")
        self.assertIn("there is no service 'frob'", result.stderr)

    def test_local_and_remote_legs_mix(self):
        box = self.start_box("file:remote,size=8M")
        leg = f"nvme-tcp://127.0.0.1:{box.port}/{NQN}"
        running = self.serve(f"mirror(file:local,size=8M, {leg})")
        written = self.data("in", self.size_of(), 3)
        self.run_tool("nbdcopy", written, self.uri())
        self.run_tool("nbdcopy", self.uri(), "out")
        self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
        self.assertEqual(running.stop(), 0)
        self.assertEqual(box.stop(), 0)
        self.assertEqual(mirror_data(self.folder / "local"), mirror_data(self.folder / "remote"))
        self.assertTrue(mirror_data(self.folder / "local").startswith(written.read_bytes()[:65536]))

    def test_an_image_with_data_becomes_a_leg_only_when_told(self):
        old = self.folder / "old.img"
        with open(old, "wb") as image:
            image.truncate(8 * MIB)
            image.seek(65536 + 64)
            image.write(b"_BHRfS_M")
            image.seek(5 * MIB)
            image.write(b"precious")
        before = old.read_bytes()
        stack = f"mirror(file:new,size=8M, file:{old})"
        result = self.run_cairn("serve", stack, "--nbd", "unix:s")
        self.assertEqual(result.returncode, 1, result.stderr)
        for part in (f"file:{old}", "a btrfs file system at byte 65600", "would be lost",
                     "--format"):
            self.assertIn(part, result.stderr)
        self.assertEqual(old.read_bytes(), before)
        box = self.start_box("mem:size=1M")
        for args in (("thin",), ("mirror", "file:other,size=8M")):
            stack_of = f"{args[0]}({', '.join([*args[1:], f'file:{old}'])})"
            said = self.run_cairn("drive", "add", stack_of)
            self.assertIn("a btrfs file system", said.stderr)
        self.assertEqual(old.read_bytes(), before)
        self.assertEqual(box.stop(), 0)
        running = self.serve(stack, "--format")
        written = self.data("in", self.size_of(), 3)
        self.run_tool("nbdcopy", written, self.uri())
        self.assertEqual(running.stop(), 0)
        self.assertEqual(self.serve(stack).stop(), 0)
        self.assertEqual(mirror_data(self.folder / "new"), mirror_data(old))

    def test_holes_come_from_the_drive(self):
        self.serve("priority(file:sparse,size=64M)")
        self.run_tool("nbdcopy", self.data("in", 1 * MIB), self.uri())
        parts = json.loads(self.run_tool("nbdinfo", "--json", "--map", self.uri()))
        self.assertEqual([(each["length"], each["type"]) for each in parts],
                         [(MIB, 0), (63 * MIB, 3)])

    def test_writes_that_are_atomic_are_told(self):
        known = json.loads(self.run_ok("drive", "services", "--json"))["services"]
        stacks = [("priority(mem:size=4M)", 0)]
        if any(each["name"] == "atomic" for each in known):
            stacks.append(("atomic(mem:size=4M, unit=64K)", 15))
        for stack, more in stacks:
            running = self.serve(stack, "--nvme-tcp", "127.0.0.1:0")
            place = self.place(self.nvme_port(running))
            page = json.loads(self.nvme("id-ns", place, "--json"))
            for field in ("nawun", "nawupf", "nabsn", "nabspf"):
                self.assertEqual(page[field], more, field)
            self.assertEqual(running.stop(), 0)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Secrets(StackTest):
    def test_only_the_key_opens_what_was_encrypted(self):
        for name in ("a.key", "b.key"):
            self.run_ok("key", "new", "drive", "--output", str(self.folder / name))
        running = self.serve("encrypt(file:d,size=8M, key=a.key)")
        written = self.write("in", b"nobody reads it." * (MIB // 16))
        self.run_tool("nbdcopy", written, self.uri())
        self.assertEqual(running.stop(), 0)
        self.assertNotIn(b"reads", (self.folder / "d").read_bytes())
        before = (self.folder / "d").read_bytes()
        result = self.run_cairn("serve", "encrypt(file:d, key=b.key)")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the key is wrong", result.stderr)
        self.assertEqual((self.folder / "d").read_bytes(), before)
        again = self.serve("encrypt(file:d, key=a.key)")
        self.run_tool("nbdcopy", self.uri(), "out")
        self.assertTrue((self.folder / "out").read_bytes().startswith(written.read_bytes()))
        self.assertEqual(again.stop(), 0)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Restarts(StackTest):
    def fio(self, *args, status=0, uri=None, size="6M"):
        return self.run_tool("fio", "--name=job", "--ioengine=nbd", f"--uri={uri or self.uri()}",
                             f"--size={size}", "--randseed=7", "--iodepth=16", *args,
                             status=status)

    VERIFY = ("--rw=randwrite", "--bsrange=512-64k", "--bs_unaligned", "--verify=crc32c",
              "--verify_fatal=1", "--do_verify=1", "--end_fsync=1")

    def test_a_mirror_that_was_killed_under_load_is_whole_again(self):
        stack = "mirror(file:l,size=16M, file:r,size=16M)"
        running = self.serve(stack)
        self.fio(*self.VERIFY)
        # Somewhere else, without an end: it is cut off in the middle of its writes.
        load = subprocess.Popen(
            ["fio", "--name=load", "--ioengine=nbd", f"--uri={self.uri()}", "--rw=randwrite",
             "--bs=4k", "--iodepth=16", "--offset=8M", "--size=4M", "--time_based",
             "--runtime=1000", "--eta=always", "--eta-interval=250ms", "--eta-newline=250ms"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(load.stdout.close)
        self.addCleanup(load.kill)
        for line in load.stdout:
            if "[w=" in line and "[w=0" not in line:
                break
        running.kill()
        load.kill()
        load.wait()
        again = self.serve(stack)
        self.fio(*self.VERIFY, "--verify_only")
        self.run_tool("nbdcopy", self.uri(), "out")
        self.assertEqual(again.stop(), 0)
        third = self.serve(stack)  # nothing is left to copy by now, or it is copied when read
        self.run_tool("nbdcopy", self.uri(), "back")
        self.assertEqual(third.stop(), 0)
        seen = (self.folder / "out").read_bytes()
        self.assertEqual(seen, (self.folder / "back").read_bytes())
        for leg in ("l", "r"):
            self.assertTrue(mirror_data(self.folder / leg).startswith(seen), leg)

    def test_every_service_keeps_what_fio_wrote(self):
        table = json.loads(self.run_ok("drive", "services", "--json"))
        self.assertEqual(table["schema_version"], 1)
        # Of an example.
        self.run_ok("key", "new", "drive", "--output", str(self.folder / "drive.key"))
        for service in table["services"]:
            with self.subTest(service["name"]):
                self.check_service(service)

    def check_service(self, service):
        stack = service["example"]
        for number in range(stack.count("{}")):
            leaf = f"file:{service['name']}{number},size=16M"
            if service["leaf_only"] == "flash:":
                leaf = f"flash:profile=laptop-tlc,file={service['name']}{number},size=64M"
            stack = stack.replace("{}", leaf, 1)
        for key in re.findall(r"key=([\w.]+)", stack):
            os.chmod(self.write(key, base64.b64encode(os.urandom(64)) + b"\n"), 0o600)
        # The stack's home is the first core, and every other connection is served by the second.
        cores = support.two_cpus()
        more = ["--cores", cores] if cores else []
        running = self.serve(stack, *more)
        size = min(6 * MIB, self.size_of() // 8 * 4 // 65536 * 65536)
        self.fio(*self.VERIFY, size=size)
        self.fio("--rw=trim", "--bs=64k", f"--offset={size}", size=size // 2)
        running.kill()
        again = self.serve(stack, *more)
        self.fio(*self.VERIFY, "--verify_only", size=size)
        self.assertEqual(again.stop(), 0)
        self.assertEqual(again.log, "")


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Tenants(StackTest):
    LEAF = "flash:profile=laptop-tlc,file=d,size=64M"

    def part(self, first, count):
        return f"channels({self.LEAF}, first={first}, count={count})"

    def test_two_stacks_have_their_channels_of_one_drive(self):
        cores = support.two_cpus()
        running = self.serve(f"a={self.part(0, 2)}", f"b={self.part(2, 2)}",
                             *(["--cores", cores] if cores else []))
        for name, seed in (("a", 1), ("b", 2)):
            self.run_tool("nbdcopy", self.data(f"in-{name}", 32 * MIB, seed), self.uri(name))
        for name in ("a", "b"):
            self.run_tool("nbdcopy", self.uri(name), f"out-{name}")
            self.assertEqual((self.folder / f"out-{name}").read_bytes(),
                             (self.folder / f"in-{name}").read_bytes())
        self.assertEqual(running.stop(), 0)

    def test_channels_that_another_has_are_refused(self):
        running = self.start_cairn("serve", f"a={self.part(0, 2)}",
                                   f"b={self.part(1, 2)}", until="Ctrl-C or SIGTERM")
        self.assertIn("another has some of these channels", running.log)
        self.assertEqual(running.stop(), 0)


class Boxes(StackTest):
    def test_a_box_serves_stacks_and_takes_more_while_it_runs(self):
        args = ("mirror(file:a,size=4M, file:b,size=4M)", "--state", "state")
        box = self.start_box(*args)
        self.assertEqual(self.ask("drive", "add", "limit(file:c,size=2M, iops=100000)")["nsid"], 2)
        written = self.data("in", 2 * MIB, 5)
        self.nvme("write", self.place(box.port, 2, NQN), "--input", written)
        self.nvme("write", self.place(box.port, 1, NQN), "--input", written)
        self.ask("drive", "resize", "d1", "3M")
        self.assertEqual(self.namespaces()[2]["size"], 3 * MIB)
        box.kill()
        box = self.start_box(*args)
        listed = self.namespaces()
        self.assertIn("mirror(file:", listed[1]["stack"])
        self.assertIn("limit(file:", listed[2]["stack"])
        self.assertEqual(listed[2]["size"], 3 * MIB)
        for nsid in (1, 2):
            self.nvme("read", self.place(box.port, nsid, NQN), "--length", "2M", "--output", "out")
            self.assertEqual((self.folder / "out").read_bytes(), written.read_bytes())
        self.ask("drive", "remove", "d1", "--yes")
        self.ask("drive", "add", "priority(file:c)")  # nobody holds the file any more
        self.assertEqual(box.stop(), 0)
        self.assertNotIn("error", box.log)

    def test_a_file_names_stacks(self):
        self.write("box.toml", f"""
[[listener]]
address = "127.0.0.1:0"
[[subsystem]]
nqn = "{NQN}"
[[subsystem.namespace]]
drive = "concat(mem:size=1M, mem:size=1M)"
""")
        self.start(["serve", "--config", "box.toml"])
        self.assertEqual(self.namespaces()[1]["size"], 2 * MIB)


class Mistakes(StackTest):
    def shown(self, args, *parts, status):
        result = self.run_cairn("serve", *args)
        self.assertEqual(result.returncode, status, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        lines = result.stderr.split("\n")
        for above, below in zip(lines, lines[1:]):
            if below.strip().startswith("^ "):
                return above[below.index("^"):]
        self.fail(result.stderr)

    def test_args_that_are_wrong_are_shown_in_their_place(self):
        for text, at, part in (
                ("limit(mem:size=1M, colour=red)", "colour", "limit has no option 'colour'"),
                ("a=frob(mem:size=1M)", "frob", "there is no service 'frob'"),
                ("mirror(mem:size=1M", "", "close mirror( with ')'"),
                ("limit(mirror(mem:size=1M, mem:block=4K))", "mem:block", "has no size"),
                ("slice(nvme-tcp://127.0.0.1)", "nvme-tcp:", "names a discovery service"),
                ("stripe(file:a, file:a)", "file:a)", "this drive is in the stack already")):
            self.assertTrue(self.shown([text], part, status=2).startswith(at), text)
        self.expect_usage(["drive", "services", "limits"], "did you mean 'limit'?")

    def test_stacks_that_do_not_open_are_shown_where(self):
        self.write("small", bytes(65536))
        for text, at, parts in (
                ("x=limit(file:none)", "file:none", ["'x' cannot be served", "add ,size=8G"]),
                ("slice( mem:size=1M , offset=2M)", "slice(", ["slice cannot be opened"]),
                ("mirror(file:small, file:none)", "mirror(", ["mirror cannot be opened"]),
                ("concat(mem:size=1M, nvme-tcp://127.0.0.1:1/nqn.2026-11.io.cairn:x"
                 "?loss_timeout=1s)", "nvme-tcp:", ["127.0.0.1:1"])):
            shown = self.shown([text, "--nbd", "127.0.0.1:0"], *parts, status=1)
            self.assertTrue(shown.startswith(at), shown)
        self.assertEqual((self.folder / "small").read_bytes(), bytes(65536))

    def test_a_drive_in_use_and_a_port_in_use(self):
        running = self.serve("priority(file:a,size=1M)", "--nvme-tcp", "127.0.0.1:0")
        port = self.nvme_port(running)
        self.shown(["priority(file:a)", "--nbd", "127.0.0.1:0"], "end what uses it", status=1)
        result = self.run_cairn("serve", "mem:size=1M", "--nvme-tcp", f"127.0.0.1:{port}")
        self.expect_sentence(result, 1, f"cannot listen at 127.0.0.1:{port}",
                             "choose another port")
        for args, part in ((["mem:size=1M", "--nvme-tcp", "unix:/x"], "a port is needed"),
                            (["--file", "none.toml"], "none.toml")):
            self.assertIn(part, self.run_cairn("serve", *args).stderr)


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Many(StackTest):
    def switches(self, pid):
        total = 0
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            total += int(re.search(r"voluntary_ctxt_switches:\s*(\d+)", status.read_text())[1])
        return total

    def test_two_hundred_drives_in_one_process(self):
        args = [f"m{i}=mem:size=64M" for i in range(100)]
        args += [f"f{i}=limit(file:f{i},size=4M, iops=100000)" for i in range(100)]
        running = self.serve(*args, "--nvme-tcp", "127.0.0.1:0")
        for name in ("m0", "m99", "f0", "f99"):
            self.run_tool("nbdcopy", self.data("in", MIB), self.uri(name))
        # Nobody asks it anything while others work: it looks at its stacks once a second, no more.
        before = self.switches(running.pid)
        for _ in range(10):
            self.run_ok("drive", "services", "--json")
        self.assertLess(self.switches(running.pid) - before, 100)
        status = pathlib.Path(f"/proc/{running.pid}/status").read_text()
        resident = int(re.search(r"VmRSS:\s*(\d+) kB", status)[1])
        self.assertLess(resident, 200 << 10, "KiB for two hundred drives")
        self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    support.main()
