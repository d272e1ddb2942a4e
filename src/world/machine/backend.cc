// SPDX-License-Identifier: Apache-2.0
#include "world/machine/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/words.h"

namespace cairn::machine {

namespace {

constexpr const char* kAllowInContainer =
    "start the container with a seccomp profile that allows io_uring_setup, io_uring_enter and "
    "io_uring_register (docker run --security-opt seccomp=PROFILE, or =unconfined to try)";

UringVerdict forbidden(const UringFacts& facts) {
  if (facts.disabled == 2) {
    return {false, "switched off for everybody (kernel.io_uring_disabled=2)",
            "run 'sysctl -w kernel.io_uring_disabled=0' as root"};
  }
  if (facts.disabled == 1) {
    return {false, "reserved for one group (kernel.io_uring_disabled=1)",
            "join the group that 'sysctl kernel.io_uring_group' names, or run "
            "'sysctl -w kernel.io_uring_disabled=0' as root"};
  }
  if (facts.under_seccomp) return {false, "forbidden by a seccomp filter", kAllowInContainer};
  return {false, "not permitted",
          "look for a security module's denial in 'dmesg' and allow io_uring there"};
}

UringVerdict missing(const UringFacts& facts) {
  if (facts.under_seccomp) {
    return {false, "hidden by a seccomp filter, or not in this kernel", kAllowInContainer};
  }
  return {false, "not in this kernel, or too old there",
          "take kernel 6.1 or newer with CONFIG_IO_URING=y (Debian 12's has it)"};
}

}  // namespace

UringVerdict judge_uring(const UringFacts& facts) {
  if (facts.support.available) return {true, "works", ""};
  switch (facts.support.error) {
    case EPERM:
    case EACCES:
      return forbidden(facts);
    case ENOSYS:
      return missing(facts);
    case ENOMEM:
      return {false, "no locked memory left for a ring",
              "raise the limit: 'ulimit -l unlimited', or LimitMEMLOCK=infinity in a unit file"};
    case EMFILE:
    case ENFILE:
      return {false, "no descriptor left for a ring",
              "raise the limit: 'ulimit -n 65536', or LimitNOFILE=65536 in a unit file"};
    default:
      return {false, fmt::format("fails ({})", std::strerror(facts.support.error)),
              "report this with the output of 'cairn doctor --json'"};
  }
}

Attempt<Backend> choose_backend(config::IoChoice choice, const UringFacts& facts) {
  if (choice == config::IoChoice::kEpoll)
    return Backend{config::IoChoice::kEpoll, "it was asked for"};
  const UringVerdict verdict = judge_uring(facts);
  if (verdict.usable) {
    return Backend{config::IoChoice::kUring,
                   choice == config::IoChoice::kUring ? "it was asked for" : "io_uring works"};
  }
  const std::string why = fmt::format("io_uring is {}", verdict.found);
  if (choice == config::IoChoice::kAuto) return Backend{config::IoChoice::kEpoll, why};
  return refuse(
      fmt::format("--io uring cannot be used here, {}: {}; or use --io epoll", why, verdict.next));
}

Attempt<void> check_cores(std::span<const int> cores, const CpuFacts& facts) {
  for (const int cpu : cores) {
    if (std::ranges::find(facts.allowed, cpu) != facts.allowed.end()) continue;
    return refuse(fmt::format("CPU {} is not one this process may use: choose among {}", cpu,
                              range_list(facts.allowed)));
  }
  return {};
}

}  // namespace cairn::machine
