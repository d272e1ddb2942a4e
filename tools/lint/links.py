#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link of a document leads somewhere, and every path that it names is there.

In each *.md: a link to a file or folder needs that file or folder in the tree, and one to a section
(`#name`, `page.md#name`) a heading to which GitHub gives that name. Links to other sites are not
followed. A path in backticks that begins with a folder of ours (`src/base/error.h`, `bench/`) has
to be there too, unless it has a placeholder or a pattern in it. What is shown as code is not read.
In sources and scripts, every page `docs/....md` that they name has to be there.
"""

import posixpath
import re

from common import Finding, arguments, files, finish, read

FOLDERS = ("apps", "bench", "cmake", "docs", "fuzz", "include", "lib", "loadgen", "packaging",
           "src", "testing", "tests", "tools")

LINK = re.compile(r"\]\(([^()\s]+)\)")  # its text may have begun on the line before
OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:")
PAGE = re.compile(r"(?<![\w/.])docs/[\w/]+\.md(?:#[\w-]+)?")
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
NAMED = re.compile(r"`((?:%s)/[\w./-]*)`" % "|".join(FOLDERS))
HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
FENCE = re.compile(r"\s*(```|~~~)")


def prose(text):
    """Yields (number, line) of what is not shown as code."""
    fence = None
    was_blank, in_code = True, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
            continue
        if fence:
            continue
        # An indented line after a blank one begins code, but not inside a list.
        in_code = line.startswith("    ") and (was_blank or in_code)
        was_blank = not line.strip()
        if not in_code:
            yield number, line


def anchor_of(heading):
    """The name that GitHub gives a heading, before it numbers those that are the same."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")


def anchors_of(text):
    seen, found = {}, set()
    for _, line in prose(text):
        heading = HEADING.match(line)
        if heading:
            name = anchor_of(heading[1])
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
    return found


class Tree:
    def __init__(self, root):
        self.root = root
        self.paths = set(files(root))
        for path in list(self.paths):
            while path := path.rpartition("/")[0]:
                self.paths.add(path)
        self.paths.add("")
        self.anchors = {}

    def has(self, path):
        return path.rstrip("/") in self.paths

    def has_section(self, path, name):
        if path not in self.anchors:
            self.anchors[path] = anchors_of(read(self.root, path))
        return name in self.anchors[path]


def check_link(tree, path, number, target, folder):
    """`folder`: where the target is named from."""
    if OTHER_SITE.match(target):
        return
    file, _, section = target.partition("#")
    place = posixpath.normpath(posixpath.join(folder, file)) if file else path
    place = "" if place == "." else place
    if not tree.has(place):
        yield Finding(path, number, f"{target} leads nowhere",
                      "name a file or folder that is there")
    elif section and place.endswith(".md") and not tree.has_section(place, section):
        yield Finding(path, number, f"{place} has no section #{section}",
                      "link to a heading that it has, in lower case with - between the words")


def check_document(tree, path):
    for number, line in prose(read(tree.root, path)):
        for named in NAMED.findall(line):
            if not tree.has(named):
                yield Finding(path, number, f"there is no `{named}`",
                              "name what is there, by its path from the top")
        for target in LINK.findall(CODE_SPAN.sub("``", line)):
            yield from check_link(tree, path, number, target, posixpath.dirname(path))


def check_source(tree, path):
    for number, line in enumerate(read(tree.root, path).splitlines(), 1):
        for target in PAGE.findall(line):
            yield from check_link(tree, path, number, target, "")


def main():
    root = arguments(__doc__).root
    tree = Tree(root)
    findings = []
    for path in files(root, ".md"):
        findings += check_document(tree, path)
    for path in files(root, ".h", ".cc", ".c", ".py", ".txt", ".toml", ".yml", ".service"):
        findings += check_source(tree, path)
    finish(findings)


if __name__ == "__main__":
    main()
