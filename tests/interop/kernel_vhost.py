# SPDX-License-Identifier: Apache-2.0
"""QEMU and its guest use drives that `cairn serve --vhost-user` serves: firmware boots from
one, a kernel makes file systems on them in both layouts of virtqueues, sees a resize, and notices
nothing when the server is killed under verified I/O. A file system on a volume outlives boxes."""

import json
import pathlib
import re
import shlex
import signal
import struct
import subprocess
import unittest

from kernel_host import at_end
from linux_guest import Guest, Setup, wait_until
from pool import Pool
from target import why_no_command

MIB = 1 << 20
TOLD = b"cairn boots this machine\r\n\0"
BOXES = ("box0", "box1", "box2")
TOLD_SECTOR = 9  # in the middle of the second block of 4 KiB


def boot_sector():
    """Reads a sector through the firmware and sends what it holds to the first serial port."""
    code = bytes.fromhex(
        "fa 31c0 8ed8 8ec0 8ed0 bc007c fc"  # no interrupts; all segments 0, a stack below us
        "be287c b442 cd13 720e"             # read what the packet at the end says; stop on failure
        "be007e ac 84c0 7406 baf803 ee ebf5"  # byte by byte, up to a zero
        "f4 ebfd 90")                       # rest
    packet = struct.pack("<BBHHHQ", 16, 0, 1, 0x7e00, 0, TOLD_SECTOR)
    return (code + packet).ljust(510, b"\0") + b"\x55\xaa"


class Server:
    """`cairn serve` with its drives, which can be killed and started again."""

    def __init__(self, program, folder, drives):
        self.program, self.folder, self.drives = program, folder, drives
        self.process = None

    def socket(self, name):
        return self.folder / f"{name}.sock"

    def start(self):
        args = [self.program, "serve", "--control", self.folder / "control"]
        args += [f"{name}={stack}" for name, stack in self.drives.items()]
        for name in self.drives:
            args += ["--vhost-user", f"{name}={self.socket(name)}"]
        with open(self.folder / "server", "a") as log:
            self.process = subprocess.Popen(args, cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            if line.startswith("Ctrl-C"):
                return
        raise AssertionError(f"cairn ended with {self.process.wait()}, see {self.folder}/server")

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def restart(self):
        self.kill()
        self.start()

    def ask(self, *args):
        asked = subprocess.run([self.program, "drive", *args, "--control",
                                self.folder / "control"], capture_output=True, text=True)
        if asked.returncode:
            raise AssertionError(asked.stderr)
        return asked.stdout

    def device(self, name, *options):
        """The arguments for one drive, without those for the guest's memory."""
        args = shlex.split(self.ask("qemu-args", name, *options))
        return args[args.index("-chardev"):]


class KernelVhost(unittest.TestCase):
    """One guest for all tests; subclasses say which kernel's."""

    kernel: str
    folder: pathlib.Path
    guests: pathlib.Path
    program: pathlib.Path

    @classmethod
    def setUpClass(cls):
        if why_not := why_no_command(cls.program, "drive"):
            raise unittest.SkipTest(why_not)
        cls.folder.mkdir(parents=True, exist_ok=True)
        for name in ("split", "packed"):
            (cls.folder / name).unlink(missing_ok=True)
        cls.server = Server(cls.program, cls.folder, {
            "split": "file:split,size=340M", "packed": "file:packed,size=340M",
            "grows": "mem:size=64M"})
        at_end(cls, cls.server.kill)
        cls.server.start()
        cls.start_volume()
        setup = Setup(kernel=cls.kernel, network=None, shared_memory=True, cpus=2, qemu_args=(
            *cls.server.device("split", "--queues", "2"),
            *cls.server.device("packed", "--queues", "2", "--packed"),
            *cls.server.device("grows"),
            *cls.volume_server.device("volume")))
        cls.guest = Guest.boot(cls.guests, cls.folder / "guest", setup)
        at_end(cls, cls.guest.kill)
        cls.guest.check("modprobe -a ext4 xfs")
        serials = cls.guest.check("grep . /sys/block/vd*/serial")
        cls.disk = {name: disk for disk, name in re.findall(r"/(vd\w+)/serial:(\w+)", serials)}

    @classmethod
    def start_volume(cls):
        """A volume of three replicas, and a server for it alone."""
        cls.pool = Pool(cls.program, cls.folder / "pool")
        at_end(cls, cls.pool.kill)
        for name in BOXES:
            cls.pool.start_box(name)
        cls.pool.start_arbiter()
        for name in BOXES:
            cls.pool.add(name)
        cls.pool.ask("volume", "create", "vol0", "--size", "64M", "--replicas", "3")
        cls.volume_server = Server(cls.program, cls.pool.folder,
                                   {"volume": cls.pool.drive("vol0")})
        at_end(cls, cls.volume_server.kill)
        cls.volume_server.start()

    def run_in_guest(self, *commands, answer=None):
        status, output = self.guest.run("set -e; " + "; ".join(commands), limit_s=300,
                                        answer=answer)
        self.assertEqual(status, 0, output)
        return output

    def test_guest_sees_what_the_drive_is(self):
        for name in ("split", "packed"):
            disk = self.disk[name]
            shown = self.run_in_guest(
                f"cd /sys/block/{disk}", "cat size", "cat queue/logical_block_size",
                "cat queue/physical_block_size", "ls mq | wc -l", "cat cache_type",
                "cat queue/discard_max_bytes queue/write_zeroes_max_bytes",
                "cat device/features | cut -c35")
            size, logical, physical, queues, cache, discard, zeroes, packed = shown.split("\n")
            self.assertEqual((int(size) * 512, logical, physical), (340 * MIB, "512", "4096"))
            self.assertEqual((queues, cache), ("2", "write back"))
            self.assertEqual((discard, zeroes), (str(1 << 30), str(64 * MIB)))
            self.assertEqual(packed, "1" if name == "packed" else "0")

    def test_file_systems_keep_their_files(self):
        for name, kind, make, check in (("split", "ext4", "mkfs.ext4 -q -F", "e2fsck -f -n"),
                                        ("packed", "xfs", "mkfs.xfs -q -f", "xfs_repair -n")):
            with self.subTest(kind):
                disk = f"/dev/{self.disk[name]}"
                self.run_in_guest(
                    f"{make} {disk}", f"mount -t {kind} {disk} /mnt",
                    "fio --name=v --directory=/mnt --rw=randwrite --bs=4k --size=1m"
                    " --ioengine=libaio --iodepth=16 --direct=1 --verify=crc32c --do_verify=1"
                    " --end_fsync=1 --eta=never --output=/tmp/fio",
                    "fstrim /mnt", "umount /mnt", f"{check} {disk} >/dev/null 2>&1")
                # It is a root: programs run from it, found by nothing else.
                told = self.run_in_guest(
                    f"mount -t {kind} {disk} /mnt", "mkdir /mnt/bin", "cp /bin/busybox /mnt/bin/",
                    "umount /mnt", f"mount -t {kind} -o ro {disk} /mnt",
                    "chroot /mnt /bin/busybox sh -c 'echo from $0 of a new root' sh", "umount /mnt")
                self.assertIn("of a new root", told)

    def test_files_on_a_volume_outlive_boxes(self):
        disk = f"/dev/{self.disk['volume']}"
        wrote = self.run_in_guest(
            f"mkfs.ext4 -q -F {disk}", f"mount -t ext4 {disk} /mnt",
            "fio --name=v --directory=/mnt --rw=randwrite --bs=4k --size=4m --ioengine=libaio"
            " --iodepth=16 --direct=1 --verify=crc32c --verify_backlog=64 --do_verify=1"
            " --end_fsync=1 --eta=never --output=/tmp/fio & fio=$!",
            "ask box kill", "dd if=/dev/urandom of=/mnt/big bs=64k count=128 status=none",
            "wait $fio", "sync", "cd /mnt", "sha256sum big v.0.0", "cd /", "umount /mnt",
            f"e2fsck -f -n {disk} >/dev/null 2>&1",
            answer=lambda _args: self.pool.kill(BOXES[0]))
        sums = re.findall(r"[0-9a-f]{64}  \S+", wrote)
        self.assertEqual(len(sums), 2, wrote)
        self.assertGreater(self.pool.lacking("vol0"), 0)
        # It comes back, is caught up, and then it alone has all of it.
        self.pool.start_box(BOXES[0])
        wait_until(lambda: self.pool.lacking("vol0") == 0, 120, "what it missed is copied")
        for name in BOXES[1:]:
            self.pool.kill(name)
        found = self.run_in_guest(
            f"e2fsck -f -n {disk} >/dev/null 2>&1", f"mount -t ext4 -o ro {disk} /mnt", "cd /mnt",
            "sha256sum big v.0.0", "cd /", "umount /mnt")
        self.assertEqual(re.findall(r"[0-9a-f]{64}  \S+", found), sums)
        self.assertNotIn("I/O error", (self.guest.folder / "console").read_text(errors="replace"))

    def test_discard_and_zeroes_clear_blocks(self):
        disk = f"/dev/{self.disk['split']}"
        for clear in ("blkdiscard", "blkdiscard -z"):
            self.run_in_guest(
                f"dd if=/dev/urandom of={disk} bs=64k count=16 oflag=direct status=none",
                f"{clear} -f -o 0 -l 524288 {disk}",
                f"cmp -n 524288 {disk} /dev/zero", f"! cmp -n 524288 -i 524288:0 {disk} /dev/zero"
                " >/dev/null 2>&1 || false")

    def test_resize_is_seen(self):
        disk = self.disk["grows"]
        for size in (96, 128):
            self.server.ask("resize", "grows", f"{size}M")
            wait_until(lambda: self.run_in_guest(f"cat /sys/block/{disk}/size").strip()
                       == str(size * MIB // 512), 30, f"the guest sees {size} MiB")
        self.run_in_guest(
            f"dd if=/dev/urandom of=/dev/{disk} bs=4k seek=32767 count=1 oflag=direct")

    def test_killed_server_is_not_noticed(self):
        kills = []

        def kill(_args):
            kills.append(1)
            self.server.restart()

        for name in ("split", "packed"):
            with self.subTest(name):
                kills.clear()
                self.run_in_guest(
                    f"fio --name=v --filename=/dev/{self.disk[name]} --rw=randwrite --bs=4k"
                    " --size=2m --ioengine=libaio --iodepth=32 --direct=1 --verify=crc32c"
                    " --do_verify=1 --eta=never --output=/tmp/fio & fio=$!",
                    "ask server kill", "ask server kill", "wait $fio", answer=kill)
                self.assertEqual(len(kills), 2)
        self.assertIsNone(self.guest.crash())
        self.assertNotIn("I/O error", (self.guest.folder / "console").read_text(errors="replace"))

    def test_firmware_boots_from_it(self):
        folder = self.folder / "boots"
        folder.mkdir(exist_ok=True)
        with open(folder / "disk", "wb") as disk:
            disk.write(boot_sector())
            disk.seek(TOLD_SECTOR * 512)
            disk.write(TOLD)
            disk.truncate(16 * MIB)
        server = Server(self.program, folder, {"disk": "file:disk"})
        self.addCleanup(server.kill)
        server.start()
        serial = folder / "serial"
        serial.unlink(missing_ok=True)
        args = shlex.split(server.ask("qemu-args", "disk", "--memory", "64M", "--boot"))
        with open(folder / "qemu", "w") as log:
            qemu = subprocess.Popen(
                ["timeout", "120", "qemu-system-x86_64", "-M", "q35", *args, "-nodefaults",
                 "-display", "none", "-serial", f"file:{serial}"], stdin=subprocess.DEVNULL,
                stderr=log)
        try:
            wait_until(lambda: serial.exists() and TOLD[:-3] in serial.read_bytes(), 90,
                       "what the boot sector says")
        finally:
            qemu.terminate()
            qemu.wait()
        listed = json.loads(server.ask("list", "--json"))["drives"][0]
        self.assertEqual(listed["vhost_user"], str(server.socket("disk")))
