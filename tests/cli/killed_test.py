#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a killed process held, the kernel may hold a little longer: a start waits for it. What a
living one holds is refused, with its name."""

import ctypes
import fcntl
import os
import socket
import threading

import support
from box_support import BoxTest

IN_CLOSE, IN_OPEN = 0x18, 0x20


class Lingering(BoxTest):
    """The test holds what is wanted, and lets go once cairn has tried to take it."""

    def hold_socket(self, name):
        path = str(self.folder / name)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()

        def let_go():
            probe, _ = listener.accept()
            probe.close()
            listener.close()

        self.in_background(let_go)
        return path

    def hold_lock(self, name, lock, event):
        path = self.folder / name
        path.touch()
        held = os.open(path, os.O_RDWR)
        lock(held, fcntl.LOCK_EX)
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_CLOEXEC)
        self.assertGreaterEqual(watch, 0)
        self.assertGreaterEqual(libc.inotify_add_watch(watch, bytes(path), event), 0)

        def let_go():
            os.read(watch, 4096)
            os.close(held)
            os.close(watch)

        self.in_background(let_go)

    def in_background(self, let_go):
        thread = threading.Thread(target=let_go, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 60)

    def serve(self, *args):
        return self.start_cairn("serve", *args, until="Ctrl-C")

    def test_a_socket_of_a_vhost_user_door(self):
        path = self.hold_socket("vm")
        self.serve("mem:size=1M", "--vhost-user", path, "--control", "off")

    def test_a_socket_of_a_vfio_user_door(self):
        path = self.hold_socket("vm")
        self.serve("mem:size=1M", "--vfio-user", path, "--control", "off")

    def test_a_socket_of_nbd(self):
        path = self.hold_socket("nbd")
        self.serve("mem:size=1M", "--nbd", f"unix:{path}", "--control", "off")

    def test_control_sockets(self):
        path = self.hold_socket("drives")
        self.serve("mem:size=1M", "--nbd", "127.0.0.1:0", "--control", path)
        path = self.hold_socket("box")
        self.start_box("mem:size=1M", "--control", path)

    def test_a_file(self):
        self.write("d", bytes(1 << 20))
        self.hold_lock("d", fcntl.flock, IN_CLOSE)
        self.start_box("file:d")

    def test_a_file_in_a_stack(self):
        self.write("d", bytes(1 << 20))
        self.hold_lock("d", fcntl.flock, IN_CLOSE)
        self.serve("limit(file:d, iops=1000)", "--nbd", "127.0.0.1:0", "--control", "off")

    def test_a_state_folder(self):
        (self.folder / "s").mkdir()
        self.hold_lock("s/lock", fcntl.flock, IN_OPEN)
        self.start_box("--state", "s", "mem:size=1M")

    def test_a_folder_of_metadata(self):
        args = ("rack", "serve", "meta", "--listen", "127.0.0.1:0")
        self.start_cairn(*args, until="Ctrl-C").stop()
        self.hold_lock("meta/LOCK", fcntl.lockf, IN_CLOSE)
        self.start_cairn(*args, until="Ctrl-C")


class Living(BoxTest):
    def test_who_listens_is_told(self):
        path = str(self.folder / "s")
        running = self.start_cairn("serve", "mem:size=1M", "--vhost-user", path,
                                   "--control", str(self.folder / "ctl"), until="Ctrl-C")
        for door in ("--vhost-user", "--vfio-user"):
            result = self.run_cairn("serve", "mem:size=1M", door, path, "--control", "off")
            self.expect_sentence(result, 1, f"end what listens there (process {running.pid})")
        result = self.run_cairn("serve", "mem:size=1M", "--nbd", "127.0.0.1:0",
                                "--control", str(self.folder / "ctl"))
        self.expect_sentence(result, 1, f"another server (process {running.pid}) listens")
        self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    support.main()
