#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test has one name: one that only runs a coroutine in the simulator is a SIM_TEST.

testing/sim_test.h says how it is written. Found are a TEST, TEST_F or TEST_P whose whole body is

    run(coroutine);                                         that no other test runs
    run([](Env& env) { return coroutine(env); });
    run([](Env& env) -> Task<void> { ... });

with `run` or `run_in_sim`, on a cluster of the test's own or none. What sets something up before,
looks at what a run left, or passes the coroutine more than its world, is a TEST.
"""

import re

from common import TEST_FILE, Finding, arguments, body_of, code_only, files, finish, line_of, read

# Their tests wait until the two servers are one.
NOT_YET = ("src/server/",)

TEST = re.compile(r"^TEST(?P<kind>_F|_P)?\((?P<name>\w+,\s*\w+)\)\s*\{", re.MULTILINE)
RUN = r"^\s*(?:sim::Cluster cluster;\s*)?(?:run|run_in_sim)\(\s*(?:cluster,\s*)?"
NAMED = re.compile(RUN + r"&?(?:\w+::)*(?P<coroutine>\w+)\s*\);\s*$")
LAMBDA = re.compile(RUN + r"\[[^\]]*\]\([^()]*\)\s*(?P<type>->\s*[\w:<>]+\s*)?"
                    r"\{(?P<body>.*)\}\s*\);\s*$", re.DOTALL)
FORWARDED = re.compile(r"\s*return \w+\(\s*env(?:,\s*(?:cluster|registry))?\s*\);\s*$")


def is_one_run(body):
    """Whether nothing comes behind the first call."""
    begin = re.match(RUN, body)
    if not begin:
        return False
    depth = 1
    for match in re.compile(r"[(){}]").finditer(body, begin.end()):
        depth += 1 if match.group() in "({" else -1
        if depth == 0:
            return body[match.end():].strip() == ";"
    return False


def has_two_names(code, body):
    if not is_one_run(body):
        return False
    named = NAMED.match(body)
    if named:
        name = named.group("coroutine")
        is_coroutine = re.search(rf"\bTask<void>\s+(?:\w+::)*{name}\(", code)
        runs = re.findall(rf"\brun(?:_in_sim)?\(\s*(?:\w+,\s*)?&?(?:\w+::)*{name}\b", code)
        return bool(is_coroutine) and len(runs) == 1
    anonymous = LAMBDA.match(body)
    return bool(anonymous) and bool(anonymous.group("type")
                                    or FORWARDED.match(anonymous.group("body")))


def check_file(root, path):
    code = code_only(read(root, path))
    for match in TEST.finditer(code):
        if has_two_names(code, body_of(code, match.end())):
            kind = match.group("kind") or ""
            yield Finding(path, line_of(code, match.start()),
                          f"TEST{kind}({' '.join(match.group('name').split())}) is a coroutine's "
                          "second name", f"write SIM_TEST{kind} (testing/sim_test.h)")


def main():
    root = arguments(__doc__).root
    finish(finding for path in files(root, "_test.cc")
           if TEST_FILE.search(path) and not path.startswith(NOT_YET)
           for finding in check_file(root, path))


if __name__ == "__main__":
    main()
