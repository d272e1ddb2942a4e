// SPDX-License-Identifier: Apache-2.0
// Kernel, processor, memory and limits.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "config/files.h"
#include "world/machine/facts.h"

namespace cairn::machine {

namespace {

constexpr size_t kKernelFileMax = 4 << 20;

// The value after `key` at the start of a line: "MemTotal:   16 kB" gives "16 kB".
std::string value_of(std::string_view text, std::string_view key) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const size_t start = line.find_first_not_of(" \t:=\"");
    if (start == line.npos) return "";
    line.remove_prefix(start);
    line = line.substr(0, line.find_last_not_of(" \t\"") + 1);
    return std::string(line);
  }
  return "";
}

uint64_t number(std::string_view text, int base = 10) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::string file_or_empty(const std::string& path) {
  return config::read_file(path, kKernelFileMax).value_or("");
}

bool has_word(std::string_view text, std::string_view word) {
  return fmt::format(" {} ", text).find(fmt::format(" {} ", word)) != std::string::npos;
}

}  // namespace

KernelFacts gather_kernel() {
  KernelFacts facts;
  utsname names = {};
  if (::uname(&names) == 0) {
    facts.release = names.release;
    facts.architecture = names.machine;
    const std::string_view release = facts.release;
    facts.major = static_cast<int>(number(release));
    const size_t dot = release.find('.');
    if (dot != release.npos) facts.minor = static_cast<int>(number(release.substr(dot + 1)));
  }
  facts.distribution = value_of(file_or_empty("/etc/os-release"), "PRETTY_NAME=");
  return facts;
}

CpuFacts gather_cpu() {
  CpuFacts facts;
  const std::string info = file_or_empty("/proc/cpuinfo");
  facts.model = value_of(info, "model name");
  facts.online_count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) facts.allowed.push_back(cpu);
    }
  }
#if defined(__x86_64__)
  facts.wanted = {"sse4_2", "pclmulqdq", "avx2"};
  const std::string flags = value_of(info, "flags");
#else
  facts.wanted = {"crc32", "pmull"};
  const std::string flags = value_of(info, "Features");
#endif
  for (const std::string& flag : facts.wanted) {
    if (!has_word(flags, flag)) facts.wanted_but_missing.push_back(flag);
  }
  return facts;
}

MemoryFacts gather_memory() {
  const std::string info = file_or_empty("/proc/meminfo");
  return {number(value_of(info, "MemTotal")) * 1024, number(value_of(info, "MemAvailable")) * 1024};
}

LimitFacts gather_limits() {
  LimitFacts facts;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = limit.rlim_cur;
    facts.open_files_hard = limit.rlim_max;
  }
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts.locked_memory_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  }
  constexpr int kCapIpcLock = 14;  // linux/capability.h
  const uint64_t capabilities = number(value_of(file_or_empty("/proc/self/status"), "CapEff"), 16);
  facts.may_lock_any = (capabilities >> kCapIpcLock & 1) != 0;
  return facts;
}

Facts gather() {
  return {.kernel = gather_kernel(),
          .cpu = gather_cpu(),
          .memory = gather_memory(),
          .uring = gather_uring(),
          .epoll_error = gather_epoll(),
          .limits = gather_limits(),
          .folder = gather_folder("."),
          .nvme_drives = gather_nvme_drives(),
          .kvm_error = gather_kvm(),
          .network_namespaces = gather_network_namespaces(),
          .ports = gather_ports()};
}

}  // namespace cairn::machine
