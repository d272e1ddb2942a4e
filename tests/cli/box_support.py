# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cairn serve` with NVMe hosts share: a box that runs, and asking it."""

import json
import os
import re

import support

NQN = "nqn.2026-11.io.cairn:test"


class BoxTest(support.CliTest):
    """Control sockets are in the test's own folder."""

    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "HOME": str(self.folder)}
        self.env.pop("XDG_DATA_HOME", None)

    def run_cairn(self, *args, **options):
        return super().run_cairn(*args, **{"env": self.env, **options})

    def start_box(self, *args, listen=("127.0.0.1:0",), nqn=NQN, **options):
        """A box in this folder; box.port is that of its first listener."""
        listens = [word for at in listen for word in ("--nvme-tcp", at)]
        names = ("--nqn", nqn) if nqn else ()
        return self.start(["serve", *listens, *names, *args], **options)

    def start(self, args, until="Ctrl-C or SIGTERM", **options):
        box = self.start_cairn(*args, until=until, **{"env": self.env, **options})
        box.port = int(re.search(r"(?m)^serving \S+ at \S+:(\d+)$", box.said).group(1))
        return box

    def ask(self, *args):
        """`cairn ARGS --json`, which must succeed."""
        return json.loads(self.run_ok(*args, "--json"))

    def refused(self, args, *parts):
        """`cairn ARGS` fails and says so in one sentence."""
        self.expect_sentence(self.run_cairn(*args), 1, *parts)

    def namespaces(self):
        """The drives of one server by the numbers of their namespaces."""
        drives = self.ask("drive", "list")["drives"]
        for each in drives:
            del each["control"]
        return {each["nsid"]: each for each in drives}
