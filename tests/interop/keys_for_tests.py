# SPDX-License-Identifier: Apache-2.0
"""Keys for DH-HMAC-CHAP that everybody may know: tests only."""

import base64
import os
import struct
import zlib


def secret(fill, hash_id=0, size=32):
    """A key of one repeated byte, as text: DHHC-1:HH:BASE64:."""
    key = bytes([fill]) * size
    text = base64.b64encode(key + struct.pack("<I", zlib.crc32(key))).decode()
    return f"DHHC-1:{hash_id:02}:{text}:"


HOST = secret(0x11, 1)
CONTROLLER = secret(0x22, 2, 48)
OTHER = secret(0x33)
# Not the usual name of guests: what asks for a key stays out of the sight of other cases.
HOST_ID = "22222222-2222-3333-4444-555555555555"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"

# Hash and DH group of a subsystem each.
MEANS = (("sha256", "null"), ("sha256", "ffdhe2048"), ("sha384", "ffdhe2048"),
         ("sha512", "ffdhe3072"))


def write_files(folder):
    """Returns the files by name: host, controller, other."""
    files = {}
    for name, text in (("host", HOST), ("controller", CONTROLLER), ("other", OTHER)):
        files[name] = folder / f"{name}.key"
        files[name].write_text(text + "\n")
        os.chmod(files[name], 0o600)
    return files


def box_config(nqn, folder):
    """The text of a box's file: `nqn` for everybody, nqn-HASH-GROUP for the host with the key."""
    files = write_files(folder)
    text = f'[[subsystem]]\nnqn = "{nqn}"\n'
    for hash_name, group in MEANS:
        text += f"""
[[subsystem]]
nqn = "{nqn}-{hash_name}-{group}"
hashes = ["{hash_name}"]
dh_groups = ["{group}"]
[[subsystem.host]]
nqn = "{HOST_NQN}"
key = "{files['host']}"
controller_key = "{files['controller']}"
[[subsystem.namespace]]
drive = "mem:size=64M,block=512"
[[subsystem.namespace]]
drive = "mem:size=64M,block=512"
"""
    return text
