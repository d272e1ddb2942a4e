# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn serve` share."""

import re
import socket

import support


class DriveTest(support.CliTest):
    """A cairn that serves drives at a socket in the test's own folder."""

    @property
    def socket(self):
        return self.folder / "nbd.sock"

    def serve(self, *args):
        """Starts it; one more port of its own choice is self.port."""
        running = self.start_cairn("serve", *args, "--nbd", f"unix:{self.socket}",
                                   "--nbd", "127.0.0.1:0", until="Ctrl-C")
        self.port = int(re.findall(r"127\.0\.0\.1:(\d+)", running.said)[-1])
        return running

    def uri(self, name="d0"):
        return f"nbd+unix:///{name}?socket={self.socket}"

    def dial(self):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(30)
        client.connect(str(self.socket))
        return client
