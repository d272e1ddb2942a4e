# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus' text form strictly: whatever its rules and naming conventions forbid fails."""

import re
import shutil
import subprocess

NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')
SAMPLE = re.compile(r"([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\d+(?:\.\d+)?)\Z")
TYPES = ("counter", "gauge", "histogram")
PARTS = {"histogram": ("_bucket", "_sum", "_count")}


class Family:
    def __init__(self, name, help_text):
        self.name = name
        self.help = help_text
        self.type = None
        self.samples = {}  # (suffix, labels) -> value


def _labels(text):
    labels = []
    while text:
        found = LABEL.match(text)
        if not found:
            raise ValueError(f"labels: {text}")
        labels.append((found[1], found[2]))
        text = text[found.end():]
    if len({name for name, _ in labels}) != len(labels):
        raise ValueError(f"a label twice: {labels}")
    return tuple(labels)


def _check_histogram(family):
    series = {}
    for (suffix, labels), value in family.samples.items():
        rest = tuple(each for each in labels if each[0] != "le")
        series.setdefault(rest, {}).setdefault(suffix, []).append((dict(labels).get("le"), value))
    for labels, parts in series.items():
        counts = [value for _, value in parts["_bucket"]]
        bounds = [float(bound) for bound, _ in parts["_bucket"]]
        if counts != sorted(counts) or bounds != sorted(bounds) or bounds[-1] != float("inf"):
            raise ValueError(f"{family.name}{labels}: buckets are not cumulative")
        if parts["_count"][0][1] != counts[-1] or len(parts["_sum"]) != 1:
            raise ValueError(f"{family.name}{labels}: count and sum")


def _check(family):
    if family.type is None:
        raise ValueError(f"{family.name} has no type")
    if not family.help.strip():
        raise ValueError(f"{family.name} has no help")
    if family.name.endswith("_total") != (family.type == "counter"):
        raise ValueError(f"{family.name} is a {family.type}")
    if family.type == "histogram":
        _check_histogram(family)


def parse(text):
    """Families by name, each with its samples."""
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    families = {}
    current = None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, help_text = line.split(" ", 3)
            if not NAME.match(name) or name in families:
                raise ValueError(f"{name} is no name or was there before")
            if current:
                _check(current)
            current = families[name] = Family(name, help_text)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name != current.name or kind not in TYPES or current.type or current.samples:
                raise ValueError(line)
            current.type = kind
        else:
            found = SAMPLE.match(line)
            if not found:
                raise ValueError(f"not a sample: {line!r}")
            suffix = found[1].removeprefix(current.name)
            parts = PARTS.get(current.type, ("",))
            if not found[1].startswith(current.name) or suffix not in parts:
                raise ValueError(f"{found[1]} does not belong to {current.name}")
            key = (suffix, _labels(found[2] or ""))
            if key in current.samples:
                raise ValueError(f"twice: {line}")
            current.samples[key] = float(found[3]) if "." in found[3] else int(found[3])
    _check(current)
    return families


def check_with_promtool(text):
    """What Prometheus' own checker says, where it is installed; else nothing."""
    if not (promtool := shutil.which("promtool")):
        return ""
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    return done.stdout + done.stderr
