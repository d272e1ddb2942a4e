#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lies on a drive or goes over a wire is laid out in *_format.h and *_format.cc alone.

Found elsewhere are
- a number that is read out of bytes by its width, load<uint32_t>(...), load<Le64>(...), or whose
  bytes are swapped;
- a number made of bytes by shifts: a << 8 | b;
- fields one after the other: FieldReader, FieldWriter, encode_message, decode_message;
- a struct that the same file declares and reads or writes as bytes: load<Head>(...),
  store(to, Head{...}), reinterpret_cast<const Head*>(bytes.data());
- packed structs.
Structs of *_format.h may be loaded and stored anywhere.
"""

import re

from common import TEST_FILE, Finding, arguments, code_only, files, finish, line_of, read

HOME = re.compile(r"_format\.(h|cc)$")
CHECKED = ("src/", "lib/", "loadgen/", "apps/")

# Bytes that are no record of ours, each with the reason.
EXEMPT = {
    "src/base/": "what formats are made of, hashes and random bytes",
    "src/crypto/": "algorithms over bytes",
    "src/door/": "protocols of others and words in a guest's memory; the structs are in *_format.h",
    "src/nvme/format/": "NVMe's own structures; the folder is their format",
    "src/nvme/auth/auth_secret.cc": "the text form of keys, as NVMe writes it",
    "src/nvme/auth/tls_key.cc": "the text form of keys, as NVMe writes it",
    "src/nvme/controller/pci_registers.cc": "registers",
    "src/fabric/host/queue_read.cc": "the digest behind a PDU",
    "src/tls/client_hello.cc": "TLS's own message",
    "src/env/address.cc": "addresses as text",
    "src/world/sim/network.cc": "the number of a simulated host",
    "src/volume/boxes/box_identity.cc": "a name drawn from a digest",
    "loadgen/block_pattern.cc": "contents of blocks that a load writes",
    "loadgen/key_mix.cc": "contents of values that a load writes",
    "apps/nvme/": "pages of NVMe as text",
}

NUMBER = re.compile(r"\bload<(?:\w+::)*(?:u?int(?:8|16|32|64)_t|Le\d+|Be\d+|unsigned|int)>"
                    r"|\bstd::byteswap\s*\(")
SHIFTED = re.compile(r"<<\s*8\s*\|")
FIELDS = re.compile(r"\b(?:(?:cairn::)?(?:FieldReader|FieldWriter)\b|(?:en|de)code_message\s*<)")
PACKED = re.compile(r"__attribute__\s*\(\(\s*(?:__)?packed|#\s*pragma\s+pack\b")
STRUCT = re.compile(r"\b(?:struct|class)\s+(?P<name>\w+)\s*(?:final\s*)?(?::[^{;]*)?\{")
ELSEWHERE = "put the layout into a *_format.h and call its decoder"


def check_file(root, path):
    text = read(root, path)
    code = code_only(text)
    for pattern, what in ((NUMBER, "reads a number out of bytes by its width"),
                          (SHIFTED, "makes a number of bytes by shifts"),
                          (FIELDS, "writes or reads the fields of a record")):
        for match in pattern.finditer(code):
            yield Finding(path, line_of(code, match.start()), what, ELSEWHERE)
    for match in PACKED.finditer(text):
        yield Finding(path, line_of(text, match.start()), "packs a struct", ELSEWHERE)
    for name in {match.group("name") for match in STRUCT.finditer(code)}:
        used = re.search(rf"\bload<{name}>|\bstore\([^;]*,\s*{name}\s*\{{|"
                         rf"\breinterpret_cast<(?:const\s+)?{name}\s*\*>\([^;]*\bdata\(\)", code)
        if used:
            yield Finding(path, line_of(code, used.start()),
                          f"has a layout of its own, {name}", ELSEWHERE)


def main():
    root = arguments(__doc__).root
    finish(finding for path in files(root, ".h", ".cc")
           if path.startswith(CHECKED) and not HOME.search(path) and not TEST_FILE.search(path)
           and not path.startswith(tuple(EXEMPT))
           for finding in check_file(root, path))


if __name__ == "__main__":
    main()
