#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code gets time, randomness, threads, sockets and files from env::Env, never from the system.

Only the back ends, and the folders named in RULES, may ask the operating system; that is what lets
the same code run in the simulator. A test that must (an adaptor to the real world) says so on the
line itself, with its reason:

    int fd = ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow(the peer is a plain program)

Calls are told from the methods and declarations of the same name by what stands before them:
`stream.read(`, `disk->write(`, `File::open(` and `Task<int> connect(` pass, and so does a call of a
function that the file or the header beside it declares.
"""

import re
from dataclasses import dataclass

from common import (TEST_FILE, Finding, arguments, code_only, files, finish, includes, line_of,
                    read)

REAL_WORLDS = ("src/world/posix/", "src/world/uring/", "src/world/epoll/")
WORLDS = (*REAL_WORLDS, "src/world/sim/")
# What measurements read, in real worlds alone.
METERS = "loadgen/meters.cc"
# Asks the kernel what this machine has, before there is a world.
MACHINE = "src/world/machine/"
# What reads and keeps small files for a whole process, before it serves or beside that. The prefix
# of a source and of its test.
READERS = ("src/config/files", "src/plan/",
           "src/server/config/shelf_files", "src/server/config/state_folder",
           "src/server/up/up_folder",
           "src/server/common/default_nqn", "src/server/common/drive_option",
           "src/server/common/run_folder", "src/server/control/control_path",
           "src/server/events/event_file",
           "src/server/serve/guest_socket",
           "src/server/serve/vfio_door", "src/server/open/host_name",
           "src/server/open/key_file", "src/server/open/open_stack", "src/server/open/target_uri",
           "src/server/open/stack_test")


@dataclass(frozen=True)
class Rule:
    """One class of things that are banned outside `allowed_in` (prefixes of paths)."""
    name: str
    instead: str
    allowed_in: tuple
    calls: str = ""     # free functions: f(...), ::f(...), std::f(...)
    globals: str = ""   # common words as functions: only as ::f(...) or std::f(...)
    names: str = ""     # regular expressions, anywhere in code
    headers: str = ""   # regular expressions, the whole name in <>
    tests_may: bool = False


RULES = (
    Rule("clock", "use env::Env's clock", (*REAL_WORLDS, "bench/", METERS),
         calls="clock_gettime clock_getres gettimeofday timespec_get ftime timerfd_create",
         globals="time clock",
         names=r"\b(?:system|steady|high_resolution|utc|tai|gps|file)_clock\b"
               r" (?<![\w.>:])time\s*\(\s*(?:nullptr|NULL|0|&\w+)\s*\) \b__?rdtscp?\b",
         headers=r"sys/time\.h sys/timerfd\.h"),
    Rule("random", "use env::Env's random", (*REAL_WORLDS, "bench/"),
         calls="rand srand rand_r drand48 lrand48 mrand48 arc4random arc4random_uniform getrandom"
               " getentropy",
         globals="random srandom",
         names=r"\bstd::random_device\b \bstd::mt19937(?:_64)?\b \bstd::minstd_rand0?\b"
               r" \bstd::default_random_engine\b",
         headers=r"sys/random\.h"),
    Rule("thread", "run a task on a core, and send other cores messages",
         (*REAL_WORLDS, "bench/", "lib/", METERS, "src/env/shared_word.h",
          "src/drive/block_latches.h"),
         names=r"\bstd::j?thread\b \bstd::this_thread\b \bstd::async\b \bstd::(?:promise|future)\b"
               r" \bpthread_\w+\b \bstd::(?:recursive_|shared_|timed_)*mutex\b"
               r" \bstd::(?:lock_guard|unique_lock|scoped_lock|shared_lock|call_once|once_flag)\b"
               r" \bstd::condition_variable(?:_any)?\b \bstd::atomic\w*\b \bstd::memory_order\w*\b"
               r" \bstd::(?:counting_semaphore|binary_semaphore|latch|barrier)\b"
               r" \b__(?:atomic|sync)_\w+",
         headers=r"thread mutex shared_mutex condition_variable atomic future semaphore latch"
                 r" barrier pthread\.h threads\.h stdatomic\.h"),
    Rule("sleep", "wait on a timer of env::Env", (*REAL_WORLDS, "bench/", METERS),
         calls="sleep usleep nanosleep clock_nanosleep",
         names=r"\bthis_thread::sleep_(?:for|until)\b"),
    Rule("socket", "use env::Env's streams",
         (*REAL_WORLDS, MACHINE, "src/server/open/target_uri.", "apps/", "bench/", "lib/"),
         calls="socket socketpair connect bind listen accept accept4 send sendto sendmsg sendmmsg"
               " recv recvfrom recvmsg recvmmsg shutdown setsockopt getsockopt getaddrinfo poll"
               " ppoll select pselect epoll_create epoll_create1 epoll_ctl epoll_wait eventfd",
         names=r"\bio_uring_\w+",
         headers=r"sys/socket\.h sys/un\.h sys/epoll\.h sys/eventfd\.h sys/select\.h poll\.h"
                 r" netdb\.h netinet/.* arpa/inet\.h liburing\.h linux/io_uring\.h"),
    Rule("file", "use env::Env's disks, or config/files.h and pass the contents",
         (*REAL_WORLDS, MACHINE, *READERS, "apps/", "bench/", "lib/"),
         calls="open openat creat fopen freopen fdopen tmpfile mkstemp read write pread pwrite"
               " readv writev preadv preadv2 pwritev pwritev2 lseek fsync fdatasync ftruncate"
               " fallocate posix_fallocate unlink unlinkat opendir ioctl fcntl syscall",
         globals="rename mkdir rmdir stat fstat close",
         names=r"\bstd::(?:basic_)?[io]?fstream\b \bstd::(?:basic_)?filebuf\b \bstd::filesystem\b",
         headers=r"fstream filesystem unistd\.h fcntl\.h sys/stat\.h sys/uio\.h sys/file\.h"
                 r" sys/ioctl\.h sys/syscall\.h dirent\.h"),
    Rule("print", "return a Result or write to env::Env's trace",
         ("src/base/check.", *WORLDS, "apps/", "bench/"), tests_may=True,
         calls="printf fprintf vprintf vfprintf puts fputs putchar perror",
         names=r"\bstd::(?:cout|cerr|clog)\b \b(?:fmt|std)::print(?:ln)?\b",
         headers=r"iostream print"),
    Rule("libm", "use base/portable_math.h: a seed gives the same run on every machine",
         ("src/report/", "src/plan/flash/flash_fit.", "apps/", "bench/"), tests_may=True,
         names=r"\bstd::(?:log(?:2|10|1p)?|exp(?:2|m1)?|pow|cbrt|hypot|lgamma|tgamma|erfc?)\b"
               r" \bstd::a?(?:sin|cos|tan)h?\b"),
    Rule("abort", "CHECK it, or return a Result",
         ("src/base/check.", *WORLDS, MACHINE, "apps/", "bench/"), tests_may=True,
         calls="abort exit _exit _Exit quick_exit terminate",
         names=r"\b__builtin_(?:trap|abort)\b"),
)

MARKER = re.compile(r"//\s*lint:\s*allow\b(?:\((?P<reason>[^)]*)\))?")

# What stands before a name that is being declared: a type, perhaps with * or &, then a space.
_DECLARED = re.compile(r"[\w>][*&]*\s+$")
_LAST_WORD = re.compile(r"(\w+)\s+$")
_NOT_TYPES = {"return", "co_return", "co_await", "co_yield", "throw", "else", "do", "case", "and",
              "or", "not", "goto", "in"}
_NOT_STD = {"bind"}

_BANNED_FUNCTION = re.compile(
    rf"\b({'|'.join(' '.join(rule.calls for rule in RULES).split())})\s*[(=,;){{]")


def before(code, offset):
    return code[max(0, offset - 80):offset]


def is_declaration(text):
    """Whether a name after `text` is declared there: clang-format glues *, & and > to a type."""
    if not _DECLARED.search(text):
        return False
    word = _LAST_WORD.search(text)
    return not (word and word.group(1) in _NOT_TYPES)


def declared_names(code):
    """Those banned function names that this code gives to something of its own."""
    found = set()
    for match in _BANNED_FUNCTION.finditer(code):
        text = before(code, match.start())
        if is_declaration(text) or re.search(r"(?<!\bstd)(?<=\w)::$", text):
            found.add(match.group(1))
    return found


class Matcher:
    """A rule, made ready to search."""

    def __init__(self, rule):
        self.rule = rule
        self._names = re.compile("|".join(rule.names.split())) if rule.names else None
        functions = "|".join(f"{rule.calls} {rule.globals}".split())
        self._functions = (re.compile(rf"(?P<scope>(?:\bstd)?::)?\b(?P<name>{functions})\s*\(")
                           if functions else None)
        self._globals = set(rule.globals.split())
        self._headers = re.compile("|".join(rule.headers.split())) if rule.headers else None

    def in_includes(self, text):
        """Yields (line, what) for banned headers."""
        for line, form, name in includes(text):
            if form == "<" and self._headers and self._headers.fullmatch(name):
                yield line, f"<{name}>"

    def in_code(self, code, declared):
        """Yields (offset, what) for banned names and calls."""
        for match in self._names.finditer(code) if self._names else ():
            yield match.start(), match.group().partition("(")[0].strip()
        for match in self._functions.finditer(code) if self._functions else ():
            if self._is_call(code, match, declared):
                yield match.start("name"), (match.group("scope") or "") + match.group("name")

    def _is_call(self, code, match, declared):
        scope, name = match.group("scope"), match.group("name")
        text = before(code, match.start())
        if scope and scope.startswith("std"):
            return name not in _NOT_STD
        if scope:
            return not re.search(r"[\w>]$", text)  # Type::read is a member
        if name in self._globals or name in declared:
            return False
        return not re.search(r"(?:\.|->|~)\s*$", text) and not is_declaration(text)


def check_file(root, path, matchers):
    text = read(root, path)
    lines = text.splitlines()
    code = code_only(text)
    declared = declared_names(code)
    header = re.sub(r"(_test)?\.cc$", ".h", path)
    if header != path and (root / header).is_file():
        declared |= declared_names(code_only(read(root, header)))
    is_test = bool(TEST_FILE.search(path))

    marked = {number: marker for number, line in enumerate(lines, 1)
              if (marker := MARKER.search(line))}
    used = set()
    for matcher in matchers:
        rule = matcher.rule
        if path.startswith(rule.allowed_in) or (is_test and rule.tests_may):
            continue
        found = list(matcher.in_includes(text))
        found += [(line_of(code, offset), what) for offset, what in matcher.in_code(code, declared)]
        for line, what in found:
            used.add(line)
            if not (line in marked and is_test):
                yield Finding(path, line, f"{what} ({rule.name})", rule.instead)

    for line, marker in marked.items():
        if not is_test:
            yield Finding(path, line, "lint: allow outside a test", "go through env::Env")
        elif not (marker.group("reason") or "").strip():
            yield Finding(path, line, "lint: allow without a reason",
                          "write // lint: allow(why this line must)")
        elif line not in used:
            yield Finding(path, line, "lint: allow where nothing is banned", "remove it")


def main():
    root = arguments(__doc__).root
    matchers = [Matcher(rule) for rule in RULES]
    sources = [path for path in files(root, ".h", ".cc")
               if path.startswith(("src/", "apps/", "bench/", "lib/", "loadgen/", "testing/",
                                   "tests/", "fuzz/"))]
    finish(finding for path in sources for finding in check_file(root, path, matchers))


if __name__ == "__main__":
    main()
