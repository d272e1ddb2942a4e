#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A live fuzz of the box over loopback: millions of mutated commands while a neighbour looks on.

    live_fuzz.py BINARY [COMMANDS [SEED]]

The box must neither crash nor hang, end in good order when told to, keep the neighbour's data, and
not grow: its resident memory stays below LIMIT_MIB, and after the first tenth of the commands it
grows by no more than GROWTH_MIB.
"""

import subprocess
import sys

LIMIT_MIB = 256
GROWTH_MIB = 16
PARTS = 10


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    sys.exit("live fuzz: the box is gone")


def main():
    binary = sys.argv[1]
    commands = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    box = subprocess.Popen([binary, "serve"], stdout=subprocess.PIPE, text=True)
    port = box.stdout.readline().strip()
    sizes = []
    failed = []
    for part in range(PARTS):
        attack = subprocess.run([binary, "attack", port, str(commands // PARTS), str(seed + part)],
                                stdout=subprocess.PIPE, text=True, check=False)
        print(f"part {part + 1} of {PARTS}, box {resident_mib(box.pid):.0f} MiB: "
              f"{attack.stdout.strip()}", flush=True)
        if attack.returncode != 0 or box.poll() is not None:
            failed.append(f"part {part + 1} failed; repeat with seed {seed + part}")
            break
        sizes.append(resident_mib(box.pid))
    box.terminate()
    if box.wait(timeout=60) != 0:
        failed.append(f"the box ended with {box.returncode}")
    if sizes and (max(sizes) > LIMIT_MIB or sizes[-1] - sizes[0] > GROWTH_MIB):
        failed.append(f"the box has grown: {[round(size) for size in sizes]} MiB")
    for what in failed:
        print(f"live fuzz: {what}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
