# SPDX-License-Identifier: Apache-2.0
"""What `cairn nvme` must be able to do with a target nobody here wrote.

run_cairn_host_cases() runs every verb against one address. The verbs are listed in commands(), the
ways to connect in WAYS: one more is one more line there.
"""

import dataclasses
import filecmp
import json
import pathlib
import subprocess

KIB = 1024
COMMAND_LIMIT_S = 60

# Options of the URI with which everything is repeated.
WAYS = {
    "plain": "",
    "header digest": "&hdgst=on",
    "data digest": "&ddgst=on",
    "both digests": "&hdgst=on&ddgst=on",
    "one queue": "&queues=1",
    "several queues": "&queues=4",
}


@dataclasses.dataclass(frozen=True)
class Command:
    """`cairn nvme WORDS`, which must succeed; check(stdout) returns what is wrong, or None."""
    name: str
    args: tuple
    check: callable = lambda _out: None


def uri(address, nqn, nsid, options=""):
    return f"nvme-tcp://{address}/{nqn}?nsid={nsid}{options}"


def names(*texts):
    """A check that all of these are somewhere in the output, which is JSON."""
    def check(out):
        try:
            json.loads(out)
        except ValueError as error:
            return f"its output is no JSON: {error}"
        return next((f"its output has no {text}" for text in texts if text not in out), None)
    return check


def same_files(one, other):
    def check(_out):
        return None if filecmp.cmp(one, other, shallow=False) else f"{other} differs from {one}"
    return check


def commands(address, nqn, folder, options=""):
    """All verbs in an order in which each finds what it needs."""
    one, two = (uri(address, nqn, nsid, options) for nsid in (1, 2))
    data, back, copied = (folder / name for name in ("data", "back", "copied"))
    size = ("--offset", "64K", "--length", str(data.stat().st_size))
    return [
        Command("discover", ("discover", f"nvme-tcp://{address}", "--json"), names(nqn)),
        Command("list", ("list", one, "--json"), names(nqn)),
        Command("id-ctrl", ("id-ctrl", one, "--json"), names(nqn)),
        Command("id-ns 1", ("id-ns", one, "--json"), names("nsze")),
        Command("id-ns 2", ("id-ns", two, "--json"), names("nsze")),
        Command("smart-log", ("smart-log", one, "--json"), names("host_read_commands")),
        Command("write", ("write", one, *size, "--input", data)),
        Command("read", ("read", one, *size, "--output", back), same_files(data, back)),
        Command("copy", ("copy", one, two, *size)),
        Command("read the copy", ("read", two, *size, "--output", copied),
                same_files(data, copied)),
        Command("verify", ("verify", one, "--seconds", 1, "--json"), names()),
        Command("perf", ("perf", one, "--seconds", 1, "--json"), names("iops")),
    ]


def run_cairn_host_cases(address, nqn, program, folder):
    """Runs all commands in all ways; yields (name, reason), with None for what went well."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # 300 KiB are more than fits a capsule, and no multiple of any transfer's size.
    (folder / "data").write_bytes(bytes(i * i >> 3 & 0xff for i in range(300 * KIB)))
    for way, options in WAYS.items():
        for command in commands(address, nqn, folder, options):
            yield f"{way}: {command.name}", run(program, command)


def run(program, command):
    """Returns what is wrong, or None."""
    args = [str(word) for word in (program, "nvme", *command.args)]
    try:
        result = subprocess.run(args, capture_output=True, text=True, timeout=COMMAND_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"no end within {COMMAND_LIMIT_S} s"
    if result.returncode:
        return f"it ended with {result.returncode}: {result.stderr.strip()}"
    return command.check(result.stdout)
