// SPDX-License-Identifier: Apache-2.0
#include "apps/doctor/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "base/words.h"

namespace cairn::apps::doctor {

namespace {

constexpr uint64_t kOpenFilesWanted = 4096;
constexpr uint64_t kLockedMemoryWanted = 8_MiB;
constexpr uint64_t kMemoryWanted = 1_GiB;
constexpr uint64_t kDiskWanted = 2_GiB;

Check check_kernel(const machine::KernelFacts& kernel) {
  Check check{"kernel", Status::kOk, fmt::format("{} ({})", kernel.release, kernel.architecture)};
  if (std::pair(kernel.major, kernel.minor) < std::pair(6, 1)) {
    check.status = Status::kWarn;
    check.next = "take kernel 6.1 or newer for the io_uring back end; epoll works until then";
  }
  return check;
}

Check check_distribution(const machine::KernelFacts& kernel) {
  if (kernel.distribution.empty()) {
    return {"distribution", Status::kWarn, "unknown (no /etc/os-release)",
            "Cairn is tested on Debian 12; elsewhere install what packages.txt names yourself"};
  }
  return {"distribution", Status::kOk, kernel.distribution};
}

Check check_cpu(const machine::CpuFacts& cpu) {
  const std::string model = cpu.model.empty() ? "unknown model" : cpu.model;
  Check check{
      "processor", Status::kOk,
      fmt::format("{}, {} online, usable: {}", model, cpu.online_count, range_list(cpu.allowed))};
  if (cpu.allowed.size() < 2) {
    check.status = Status::kWarn;
    check.next = "give this process two CPUs or more (taskset, docker --cpuset-cpus)";
  }
  return check;
}

Check check_instructions(const machine::CpuFacts& cpu) {
  if (cpu.wanted_but_missing.empty()) {
    return {"instructions", Status::kOk,
            fmt::format("{} (fast checksums)", comma_list(cpu.wanted))};
  }
  return {"instructions", Status::kWarn, fmt::format("no {}", comma_list(cpu.wanted_but_missing)),
          "checksums will be slow; in a virtual machine pass the host's CPU through "
          "(qemu -cpu host)"};
}

Check check_memory(const machine::MemoryFacts& memory) {
  Check check{"memory", Status::kOk,
              fmt::format("{}, {} available", text_bytes(memory.total_bytes),
                          text_bytes(memory.available_bytes))};
  if (memory.available_bytes < kMemoryWanted) {
    check.status = Status::kWarn;
    check.next = fmt::format("free some: below {} buffers run short", text_bytes(kMemoryWanted));
  }
  return check;
}

Check check_uring(const machine::UringFacts& uring) {
  const machine::UringVerdict verdict = machine::judge_uring(uring);
  if (verdict.usable) return {"io_uring", Status::kOk, verdict.found};
  return {"io_uring", Status::kMissing, verdict.found,
          verdict.next + "; until then the epoll back end is used"};
}

Check check_uring_features(const machine::UringFacts& uring) {
  const uring::Support& support = uring.support;
  const std::pair<const char*, bool> features[] = {
      {"SINGLE_ISSUER with DEFER_TASKRUN", support.single_issuer},
      {"buffer rings", support.buffer_rings},
      {"multishot accept", support.multishot_accept},
      {"multishot recv", support.multishot_receive},
      {"send_zc", support.zero_copy_send},
  };
  std::vector<std::string> have;
  std::vector<std::string> lack;
  for (const auto& [feature, present] : features) (present ? have : lack).push_back(feature);
  Check check{"io_uring features", Status::kOk, comma_list(have)};
  if (!support.available) {
    return {check.name, Status::kMissing, "unknown", "make io_uring available first"};
  }
  if (!lack.empty()) {
    check.status = Status::kWarn;
    check.found =
        fmt::format("{}; not {}", have.empty() ? "none" : comma_list(have), comma_list(lack));
    check.next = "kernel 6.1 or newer has all of them; without, each costs some speed";
  }
  return check;
}

Check check_epoll(int error) {
  if (error == 0) return {"epoll", Status::kOk, "works"};
  return {"epoll", Status::kMissing, fmt::format("fails ({})", std::strerror(error)),
          "allow epoll_create1 in the seccomp filter, or raise the descriptor limit"};
}

Check check_open_files(const machine::LimitFacts& limits) {
  Check check{"open files", Status::kOk,
              fmt::format("{} (hard limit {})", limits.open_files, limits.open_files_hard)};
  if (limits.open_files < kOpenFilesWanted) {
    check.status = Status::kWarn;
    check.next =
        limits.open_files_hard >= kOpenFilesWanted
            ? "run 'ulimit -n 65536' first, or set LimitNOFILE=65536 in the unit file"
            : "as root, raise the hard limit ('nofile' in /etc/security/limits.conf, LimitNOFILE= "
              "in a unit file, docker --ulimit nofile=65536)";
  }
  return check;
}

Check check_locked_memory(const machine::LimitFacts& limits) {
  if (limits.may_lock_any) return {"locked memory", Status::kOk, "any amount (CAP_IPC_LOCK)"};
  if (limits.locked_memory_bytes == UINT64_MAX) return {"locked memory", Status::kOk, "no limit"};
  Check check{"locked memory", Status::kOk, text_bytes(limits.locked_memory_bytes)};
  if (limits.locked_memory_bytes < kLockedMemoryWanted) {
    check.status = Status::kWarn;
    check.next = "run 'ulimit -l unlimited' first, or set LimitMEMLOCK=infinity in the unit file";
  }
  return check;
}

Check check_direct(const machine::FolderFacts& folder) {
  const std::string where = fmt::format("{} on {}", folder.path, folder.file_system);
  if (folder.create_error != 0) {
    return {"direct I/O", Status::kMissing,
            fmt::format("{}: no file can be made ({})", where, std::strerror(folder.create_error)),
            "go to a folder you may write to and run doctor again"};
  }
  if (folder.direct_error != 0) {
    return {"direct I/O", Status::kWarn,
            fmt::format("{}: none ({})", where, std::strerror(folder.direct_error)),
            "keep drives on ext4, xfs or a block device; here they go through the page cache"};
  }
  return {"direct I/O", Status::kOk,
          fmt::format("{}: in blocks of {}", where, folder.direct_block)};
}

Check check_disk_space(const machine::FolderFacts& folder) {
  Check check{
      "disk space", Status::kOk,
      fmt::format("{} free of {}", text_bytes(folder.free_bytes), text_bytes(folder.total_bytes))};
  if (folder.free_bytes < kDiskWanted) {
    check.status = Status::kWarn;
    check.next = fmt::format("free some, or start Cairn in a folder with {} or more",
                             text_bytes(kDiskWanted));
  }
  return check;
}

Check check_nvme(const std::vector<machine::NvmeDrive>& drives) {
  if (drives.empty()) {
    return {"NVMe drives", Status::kMissing, "none",
            "nothing is needed to try Cairn: files and modelled drives take their place"};
  }
  std::vector<std::string> names;
  names.reserve(drives.size());
  for (const machine::NvmeDrive& drive : drives) {
    names.push_back(
        fmt::format("{} ({}, {})", drive.name, drive.model, text_bytes(drive.size_bytes)));
  }
  return {"NVMe drives", Status::kOk, comma_list(names)};
}

Check check_kvm(int error) {
  if (error == 0) return {"/dev/kvm", Status::kOk, "usable"};
  if (error == EACCES || error == EPERM) {
    return {"/dev/kvm", Status::kWarn, "not for this user",
            "join the group kvm ('usermod -aG kvm USER', then log in again)"};
  }
  return {"/dev/kvm", Status::kMissing, fmt::format("none ({})", std::strerror(error)),
          "turn on virtualization in the firmware, or nested virtualization on the host; without "
          "it virtual machines are emulated, slowly"};
}

Check check_namespaces(machine::NamespaceRight right) {
  switch (right) {
    case machine::NamespaceRight::kYes:
      return {"network namespaces", Status::kOk, "may be made"};
    case machine::NamespaceRight::kWithUserNamespace:
      return {"network namespaces", Status::kOk, "may be made inside a user namespace"};
    case machine::NamespaceRight::kNone:
      break;
  }
  return {"network namespaces", Status::kMissing, "not permitted",
          "run as root or allow user namespaces ('sysctl -w kernel.unprivileged_userns_clone=1', "
          "docker --cap-add SYS_ADMIN); only network fault tests need them"};
}

Check check_port(const machine::PortFacts& port) {
  Check check{fmt::format("port {}", port.port), Status::kOk, fmt::format("free ({})", port.use)};
  if (port.error == 0) return check;
  check.status = Status::kWarn;
  if (port.error == EADDRINUSE) {
    check.found = fmt::format("taken ({})", port.use);
    check.next = fmt::format(
        "see who has it with 'ss -ltnp sport = :{}', and stop that or choose "
        "another port",
        port.port);
  } else {
    check.found = fmt::format("cannot be bound ({}; {})", port.use, std::strerror(port.error));
    check.next = "choose another port";
  }
  return check;
}

}  // namespace

std::string_view name(Status status) {
  static constexpr std::string_view kNames[] = {"ok", "warn", "missing"};
  return kNames[static_cast<size_t>(status)];
}

Diagnosis judge(const machine::Facts& facts) {
  Diagnosis diagnosis;
  diagnosis.checks = {check_kernel(facts.kernel),
                      check_distribution(facts.kernel),
                      check_cpu(facts.cpu),
                      check_instructions(facts.cpu),
                      check_memory(facts.memory),
                      check_uring(facts.uring),
                      check_uring_features(facts.uring),
                      check_epoll(facts.epoll_error),
                      check_open_files(facts.limits),
                      check_locked_memory(facts.limits),
                      check_direct(facts.folder),
                      check_disk_space(facts.folder),
                      check_nvme(facts.nvme_drives),
                      check_kvm(facts.kvm_error),
                      check_namespaces(facts.network_namespaces)};
  for (const machine::PortFacts& port : facts.ports) diagnosis.checks.push_back(check_port(port));
  diagnosis.chosen =
      *machine::choose_backend(config::IoChoice::kAuto, facts.uring);  // auto is never refused
  diagnosis.can_run = diagnosis.chosen.io == config::IoChoice::kUring || facts.epoll_error == 0;
  return diagnosis;
}

}  // namespace cairn::apps::doctor
