#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No lambda that captures is a coroutine: what it captured dies with the lambda object.

A coroutine's frame keeps its parameters, not the object that it was called on. So a lambda that
captures may make a task, and must not be one:

    world.run([&](env::Env& env) { return serve(env, options); });                      // good
    world.run([&](env::Env& env) -> task::Task<void> { co_await serve(env, options); });  // wrong
"""

import re

from common import Finding, arguments, code_only, files, finish, line_of, read

INSTEAD = "pass what it needs as parameters of a static function that it calls"

OPENING = {"(": ")", "[": "]", "{": "}"}
# What may stand before the '[' of a lambda although it ends like a value.
BEFORE_LAMBDA = re.compile(r"\b(?:return|co_return|co_await|co_yield|case|else)\s*$")
AFTER_VALUE = re.compile(r"[\w)\]]\s*$")
TEMPLATE = re.compile(r"\s*<[^(){};]*>")
TO_BODY = re.compile(r"\s*(?:(?:mutable|noexcept|constexpr|static)\b\s*)*(?:->[^{};]*)?\{")
TYPE_BODY = re.compile(r"\b(?:struct|class|union)\b[^;{}()]*\{")
COROUTINE = re.compile(r"\bco_(?:await|return|yield)\b")


def closing(code, at):
    """The offset of the bracket that closes the one at `at`; none: it stays open."""
    close = []
    for offset in range(at, len(code)):
        letter = code[offset]
        if letter in OPENING:
            close.append(OPENING[letter])
        elif close and letter == close[-1]:
            close.pop()
            if not close:
                return offset
    return None


def lambdas(code):
    """Yields (begin, has_captures, body, end) of each lambda, `body` being where its '{' is."""
    for match in re.finditer(r"\[", code):
        begin = match.start()
        before = code[max(0, begin - 40):begin]
        if before.endswith("[") or code[begin + 1:begin + 2] == "[":
            continue  # an attribute
        if AFTER_VALUE.search(before) and not BEFORE_LAMBDA.search(before):
            continue  # a subscript or an array
        bracket = closing(code, begin)
        if bracket is None:
            continue
        at = bracket + 1
        template = TEMPLATE.match(code, at)
        at = template.end() if template else at
        parameters = re.compile(r"\s*\(").match(code, at)
        if parameters:
            end = closing(code, parameters.end() - 1)
            if end is None:
                continue
            at = end + 1
        to_body = TO_BODY.match(code, at)
        if not to_body:
            continue
        body = to_body.end() - 1
        end = closing(code, body)
        if end is not None:
            yield begin, bool(code[begin + 1:bracket].strip()), body, end


def findings_of(path, text):
    code = code_only(text)
    found = list(lambdas(code))
    bodies = [(body, end) for _, _, body, end in found]
    for match in TYPE_BODY.finditer(code):
        end = closing(code, match.end() - 1)
        if end is not None:
            bodies.append((match.end() - 1, end))
    for begin, has_captures, body, end in found:
        if not has_captures:
            continue
        own = list(code[body:end])
        for first, last in bodies:
            if body < first < end:
                own[first - body:last - body] = " " * (last - first)
        match = COROUTINE.search("".join(own))
        if match:
            yield Finding(path, line_of(code, begin), "a lambda that captures is a coroutine",
                          INSTEAD)


def main():
    root = arguments(__doc__).root
    finish(finding for path in files(root, ".h", ".cc")
           for finding in findings_of(path, read(root, path)))


if __name__ == "__main__":
    main()
