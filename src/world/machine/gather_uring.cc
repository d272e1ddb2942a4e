// SPDX-License-Identifier: Apache-2.0
// How programs can wait for the kernel here.
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "config/files.h"
#include "world/machine/facts.h"

namespace cairn::machine {

namespace {

std::optional<int> read_integer(const std::string& path) {
  const std::string line = config::first_line(path).value_or("");
  int value = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

bool is_under_seccomp() {
  const Attempt<std::string> status = config::read_file("/proc/self/status", 1 << 20);
  return status && status->find("\nSeccomp:\t2") != std::string::npos;
}

}  // namespace

UringFacts gather_uring() {
  return {.support = uring::probe(),
          .disabled = read_integer("/proc/sys/kernel/io_uring_disabled"),
          .under_seccomp = is_under_seccomp()};
}

int gather_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

}  // namespace cairn::machine
