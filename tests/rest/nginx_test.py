#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives behind a real HTTP server, nginx with WebDAV, through libcairn."""

import argparse
import ctypes
import errno
import os
import pathlib
import random
import sys
import tempfile
import unittest

import nginx_support

MIB = 1 << 20
_options = argparse.Namespace()


class Library:
    """libcairn, as far as it is needed here."""

    def __init__(self, path):
        self._calls = ctypes.CDLL(path)
        self._calls.cairn_error_text.restype = ctypes.c_char_p
        self._calls.cairn_size.restype = ctypes.c_int64

    def open(self, name):
        drive = ctypes.c_void_p()
        result = self._calls.cairn_open(name.encode(), None, ctypes.byref(drive))
        return (Drive(self._calls, drive), "") if result == 0 else (None, self.text())

    def text(self):
        return self._calls.cairn_error_text().decode()


class Drive:
    def __init__(self, calls, drive):
        self._calls = calls
        self._drive = drive

    def size(self):
        return self._calls.cairn_size(self._drive)

    def read(self, offset, length):
        data = self.try_read(offset, length)
        assert isinstance(data, bytes), self._calls.cairn_error_text()
        return data

    def try_read(self, offset, length):
        """The bytes, or the error's number."""
        into = ctypes.create_string_buffer(length)
        result = self._calls.cairn_read(self._drive, ctypes.c_uint64(offset), into,
                                        ctypes.c_size_t(length))
        return into.raw if result == 0 else result

    def write(self, offset, data):
        return self._calls.cairn_write(self._drive, ctypes.c_uint64(offset), data,
                                       ctypes.c_size_t(len(data)))

    def discard(self, offset, length):
        return self._calls.cairn_discard(self._drive, ctypes.c_uint64(offset),
                                         ctypes.c_uint64(length))

    def close(self):
        self._calls.cairn_close(self._drive)


@unittest.skipIf(nginx_support.find_nginx() is None, "nginx with WebDAV is not installed")
class BehindNginx(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.nginx = nginx_support.Nginx(self, self.folder)
        self.library = Library(_options.library)

    def open(self, options="", path="/v/d0"):
        drive, why = self.library.open(f"{self.nginx.url}{path}{options}")
        self.assertEqual(why, "")
        return drive

    def test_random_requests_leave_what_a_model_says(self):
        dice = random.Random(7)
        model = bytearray(4 * MIB)
        drive = self.open("?size=4M&object=16K")
        self.assertEqual(drive.size(), 4 * MIB)
        for _ in range(300):
            length = 4096 * dice.choice((1, 1, 2, 4, 7, 32))
            offset = 4096 * dice.randrange((len(model) - length) // 4096 + 1)
            kind = dice.randrange(10)
            if kind < 5:
                data = dice.randbytes(length)
                self.assertEqual(drive.write(offset, data), 0)
                model[offset:offset + length] = data
            elif kind < 6:
                self.assertEqual(drive.discard(offset, length), 0)
                model[offset:offset + length] = bytes(length)
            else:
                self.assertEqual(drive.read(offset, length), model[offset:offset + length])
        drive.close()
        drive = self.open()
        self.assertEqual(drive.read(0, len(model)), model)
        drive.close()

    def test_objects_come_and_go(self):
        drive = self.open("?size=1M")
        self.assertEqual(drive.write(65536 * 3, b"x" * 65536), 0)
        self.assertEqual(drive.write(4096, b"y" * 4096), 0)
        self.assertEqual(self.nginx.objects("v/d0"), ["00000000", "00000003", "label"])
        served = self.folder / "served" / "v" / "d0" / "00000000"
        self.assertEqual(served.read_bytes(), bytes(4096) + b"y" * 4096 + bytes(65536 - 8192))
        self.assertEqual(drive.discard(0, MIB), 0)
        self.assertEqual(self.nginx.objects("v/d0"), ["label"])
        drive.close()

    def test_a_second_writer_ends_the_first(self):
        first = self.open("?size=1M&check_ms=0")
        second = self.open("?check_ms=0")
        self.assertEqual(first.write(0, b"1" * 4096), -errno.EACCES)
        self.assertIn("another writer has this drive now", self.library.text())
        self.assertEqual(second.write(0, b"2" * 4096), 0)
        self.assertEqual(first.read(0, 4096), b"2" * 4096)
        first.close()
        second.close()

    def test_what_nginx_refuses_is_told(self):
        for folder, message in (("small", "raise its limit"), ("other", "switch GET")):
            self.nginx.make_folder(folder)
            drive, why = self.library.open(f"{self.nginx.url}/{folder}?size=1M")
            if drive is not None:  # a label is small enough
                self.assertLess(drive.write(0, bytes(65536)), 0)
                why = self.library.text()
                drive.close()
            self.assertIn(message, why)

    def test_a_folder_that_is_gone_is_not_zeroes(self):
        drive = self.open("?size=1M")
        self.assertEqual(drive.write(0, b"x" * 65536), 0)
        folder = self.folder / "served" / "v" / "d0"
        folder.rename(folder.with_name("away"))
        for offset in (0, MIB - 4096):
            self.assertEqual(drive.try_read(offset, 4096), -errno.EIO)
            self.assertIn("bring its folder back", self.library.text())
        folder.with_name("away").rename(folder)
        self.assertEqual(drive.read(0, 65536), b"x" * 65536)
        self.assertEqual(drive.read(MIB - 4096, 4096), bytes(4096))
        drive.close()

    def test_a_write_that_lands_late_undoes_nothing(self):
        late = nginx_support.Stalling(self, self.nginx.url, "/v/d0/00000000")
        name = f"{late.url}/v/d0?size=1M&timeout_ms=300&retries=2"
        drive, why = self.library.open(name)
        self.assertEqual(why, "")
        self.assertEqual(drive.write(65536, b"0" * 65536), 0)
        self.assertEqual(drive.write(0, b"1" * 65536), -errno.EIO)
        # nginx ignores conditions: nothing is acknowledged that it may still undo.
        self.assertEqual(drive.write(0, b"2" * 65536), -errno.EIO)
        self.assertIn("may still carry out an earlier change", self.library.text())
        late.let_go()
        self.assertEqual(drive.read(0, 65536), b"1" * 65536)
        self.assertEqual(drive.write(0, b"3" * 65536), 0)
        self.assertEqual(drive.read(0, 65536), b"3" * 65536)
        self.assertEqual(drive.read(65536, 65536), b"0" * 65536)
        drive.close()

    def test_a_mirror_of_http_and_memory(self):
        drive, why = self.library.open(f"mirror({self.nginx.url}/v/a?size=2M, mem:size=2M)")
        self.assertEqual(why, "")
        data = random.Random(1).randbytes(MIB)
        self.assertEqual(drive.write(0, data), 0)
        self.assertEqual(drive.read(0, MIB), data)
        drive.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, type=os.path.abspath)
    rest = parser.parse_known_args(namespace=_options)[1]
    unittest.main(argv=[sys.argv[0], *rest])
