# SPDX-License-Identifier: Apache-2.0
"""A pool of elastic volumes on this machine: boxes of file drives that are processes, an arbiter,
and clients."""

import json
import os
import shutil
import subprocess

from target import TargetError, free_port

COMMAND_LIMIT_S = 300


class Process:
    """A cairn that serves."""

    def __init__(self, command, folder, env, name, until):
        with open(folder / f"{name}.log", "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True)
        self.said = ""
        for line in self._process.stdout:
            self.said += line
            if until in line:
                return
        raise TargetError(f"{name} ended with {self._process.wait()}, see {folder}/{name}.log:"
                          f" {self.last_words(folder, name)}")

    @staticmethod
    def last_words(folder, name):
        lines = (folder / f"{name}.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def send(self, number):
        self._process.send_signal(number)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Pool:
    """`folder` is emptied. What is started ends with kill()."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.env = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
        self.running = {}
        self._ports = {}

    def start(self, name, *args, until="Ctrl-C"):
        self.running[name] = Process([self.program, *args], self.folder, self.env, name, until)
        return self.running[name]

    def start_box(self, name, size="128M"):
        """A box of one file drive. After kill(): with all that it held."""
        port = self._ports.setdefault(name, free_port())
        self.start(name, "serve", f"file:{name}.raw,size={size}", "--nvme-tcp",
                   f"127.0.0.1:{port}", "--nqn", self.nqn(name), "--state", f"{name}.state",
                   "--control", f"{name}.sock")

    def start_arbiter(self):
        self.start("arbiter", "arbiter", "--meta", "rocks:pool", "--listen", "unix:arbiter.sock",
                   until="it leads")

    def start_client(self, name, volume, *doors):
        """It takes the volume over, if somebody had it open."""
        return self.start(name, "serve", f"{volume}={self.drive(volume)}", "--control",
                          f"{name}.sock", *doors)

    @staticmethod
    def drive(volume):
        return f"volume:{volume},take-over=yes,arbiter=unix:arbiter.sock"

    @staticmethod
    def nqn(name):
        return f"nqn.2026-11.io.cairn:{name}"

    def uri(self, name):
        return f"nvme-tcp://127.0.0.1:{self._ports[name]}/{self.nqn(name)}"

    def add(self, name, uri=None):
        self.ask("pool", "add", uri or self.uri(name), "--box", name)

    def run(self, *args):
        """A command to the arbiter; how it ended."""
        return subprocess.run(
            [str(word) for word in (self.program, *args, "--arbiter", "unix:arbiter.sock")],
            cwd=self.folder, env=self.env, capture_output=True, text=True,
            timeout=COMMAND_LIMIT_S, check=False)

    def ask(self, *args):
        result = self.run(*args, "--json")
        if result.returncode:
            raise TargetError(f"cairn {' '.join(args)}: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def lacking(self, volume):
        """How many of its extents lack replicas."""
        return self.ask("volume", "show", volume)["lacking"]

    def kill(self, name=None):
        for each in [name] if name else list(self.running):
            if each in self.running:
                self.running.pop(each).kill()
