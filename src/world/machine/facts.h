// SPDX-License-Identifier: Apache-2.0
// What was found out about this machine: plain facts, judged elsewhere (judge.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "world/uring/world.h"

namespace cairn::machine {

struct KernelFacts {
  std::string release;  // "6.1.0-18-amd64"
  int major = 0;
  int minor = 0;
  std::string architecture;  // "x86_64"
  std::string distribution;  // "Debian GNU/Linux 12 (bookworm)"; empty: unknown
};

struct CpuFacts {
  std::string model;
  int online_count = 0;
  std::vector<int> allowed;         // those this process may run on
  std::vector<std::string> wanted;  // instructions that make checksums fast, on this architecture
  std::vector<std::string> wanted_but_missing;
};

struct MemoryFacts {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
};

struct UringFacts {
  uring::Support support;
  std::optional<int> disabled;  // kernel.io_uring_disabled, where the kernel has it
  bool under_seccomp = false;   // this process runs under a system call filter
};

struct LimitFacts {
  uint64_t open_files = 0;
  uint64_t open_files_hard = 0;
  uint64_t locked_memory_bytes = 0;  // UINT64_MAX: no limit
  bool may_lock_any = false;         // CAP_IPC_LOCK: the limit does not apply
};

struct FolderFacts {
  std::string path;
  std::string file_system;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  int create_error = 0;       // errno of making a file here
  int direct_error = 0;       // errno of a direct write to it
  uint32_t direct_block = 0;  // smallest direct write that worked
};

struct NvmeDrive {
  std::string name;  // "nvme0n1"
  std::string model;
  uint64_t size_bytes = 0;
};

struct PortFacts {
  uint16_t port = 0;
  std::string use;  // "NVMe/TCP"
  int error = 0;    // errno of binding it; 0: free
};

enum class NamespaceRight : uint8_t { kNone, kWithUserNamespace, kYes };

struct Facts {
  KernelFacts kernel;
  CpuFacts cpu;
  MemoryFacts memory;
  UringFacts uring;
  int epoll_error = 0;
  LimitFacts limits;
  FolderFacts folder;
  std::vector<NvmeDrive> nvme_drives;
  int kvm_error = 0;  // errno of opening /dev/kvm
  NamespaceRight network_namespaces = NamespaceRight::kNone;
  std::vector<PortFacts> ports;
};

// Each asks the system and changes nothing that outlasts the call.
KernelFacts gather_kernel();
CpuFacts gather_cpu();
MemoryFacts gather_memory();
UringFacts gather_uring();
int gather_epoll();
LimitFacts gather_limits();
FolderFacts gather_folder(const std::string& path);
std::vector<NvmeDrive> gather_nvme_drives();
int gather_kvm();
NamespaceRight gather_network_namespaces();
std::vector<PortFacts> gather_ports();

// All of them; the folder is the current one.
Facts gather();

}  // namespace cairn::machine
