# SPDX-License-Identifier: Apache-2.0
"""Racks for tests: a metadata store, boxes with shelves, and drives made of their space."""

import json
import pathlib
import socket
import subprocess
import time

import support
from box_support import BoxTest
from nbd_support import DriveTest

MIB = 1 << 20
ETCD = "/usr/bin/etcd"


class RackTest(DriveTest, BoxTest):
    def serve_metadata(self, *args):
        """The embedded store, served to all processes of this machine."""
        self.store = self.start_cairn("rack", "serve", "meta", "--listen", "127.0.0.1:0", *args,
                                      until="Ctrl-C", env=self.env)
        return self.store.said.split("--rack ")[1].split()[0].strip("'")

    def start_box_in_rack(self, name, meta, size="64M", more="", port=0):
        """A box with a shelf of files; it lasts what is in its folder."""
        self.write(f"{name}.toml", f"""
[server]
state = "{self.folder}/{name}.state"
control = "{self.folder}/{name}.sock"
[[listener]]
address = "127.0.0.1:{port}"
[[subsystem]]
nqn = "nqn.2026-11.io.cairn:{name}"
[rack]
store = "{meta}"
name = "{name}"
expiry = "3s"
term = "2s"
[[rack.shelf]]
name = "d0"
folder = "{self.folder}/{name}.shelf"
size = "{size}"
iops = 100000
bandwidth = "1G"
{more}""")
        return self.start(["serve", "--config", f"{name}.toml"])

    def start_boxes(self, meta, *names, **options):
        boxes = {name: self.start_box_in_rack(name, meta, **options) for name in names}
        self.wait_for(lambda: set(self.offers(meta)) == set(names))
        return boxes

    def offers(self, meta):
        """Spare bytes by box, of offers that count."""
        read = json.loads(self.run_ok("rack", "offers", "--rack", meta, "--json"))
        return {each["box"]: each["size"] for each in read["offers"] if not each["stale"]}

    def wait_for(self, holds):
        """Asks again and again; what never holds is a failure."""
        end = time.monotonic() + support.HANGS_S
        while not holds():
            self.assertLess(time.monotonic(), end, "it never held")

    def create(self, name, meta, *args):
        said = self.run_ok("drive", "create", name, "--rack", meta, *args, "--json")
        return json.loads(said)["drive"]

    def drives(self, meta):
        return json.loads(self.run_ok("rack", "drives", "--rack", meta, "--json"))["drives"]

    def shelf_files(self, name):
        folder = pathlib.Path(f"{self.folder}/{name}.shelf")
        return sorted(each.name for each in folder.iterdir())

    def run_tool(self, *args):
        result = subprocess.run([*map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def fio(self, name, *args):
        return self.run_tool("fio", "--name=j", "--ioengine=nbd", f"--uri={self.uri(name)}",
                             "--size=8M", "--bs=4k", "--iodepth=8", "--verify=crc32c", *args)

    def start_etcd(self, *more, scheme="http", query="", until=None):
        """An etcd of the test's own; `query` is how clients come in, `until` what they are told
        when they do not."""
        held = [socket.socket() for _ in range(2)]
        for each in held:
            each.bind(("127.0.0.1", 0))
        at, peer = (each.getsockname()[1] for each in held)
        for each in held:
            each.close()
        urls = {"listen-client-urls": f"{scheme}://127.0.0.1:{at}",
                "advertise-client-urls": f"{scheme}://127.0.0.1:{at}",
                "listen-peer-urls": f"http://127.0.0.1:{peer}",
                "initial-advertise-peer-urls": f"http://127.0.0.1:{peer}"}
        args = [f"--{key}={url}" for key, url in urls.items()]
        with open(self.folder / "etcd.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [ETCD, f"--data-dir={self.folder}/etcd", *args,
                 f"--initial-cluster=default=http://127.0.0.1:{peer}", "--heartbeat-interval=20",
                 "--election-timeout=200", *more], stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        meta = f"etcd://127.0.0.1:{at}"

        def answers():
            result = self.run_cairn("rack", "offers", "--rack", meta + query)
            return until in result.stderr if until else result.returncode == 0

        self.wait_for(answers)
        return meta
