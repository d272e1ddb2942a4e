// SPDX-License-Identifier: Apache-2.0
// Where a virtual machine finds a drive: a local socket of its own, as the command line names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "door/common/waiting.h"
#include "env/address.h"

namespace cairn::server {

// [NAME=]SOCKET[,mode=interrupt|adaptive|polling], as all doors for virtual machines have it.
struct GuestArgs {
  std::string drive;   // empty: none was named
  std::string socket;  // its whole path
  door::Waiting waiting = door::Waiting::kAdaptive;
};
Attempt<GuestArgs> parse_guest_args(std::string_view text);

struct GuestSocket {
  std::string drive;  // empty: the only one
  env::Address at;
  door::Waiting waiting = door::Waiting::kAdaptive;
};

Attempt<GuestSocket> parse_guest_socket(std::string_view text);

// Gives each socket the name of its drive; one without a name and with % in its path becomes one
// for each drive, whose name takes the place of %. The Problem: there is no such drive, or several
// and none was named, or a drive or a socket comes twice, or a path is too long.
Attempt<void> assign_sockets(std::vector<GuestSocket>& sockets,
                             const std::vector<std::string>& names);

// What QEMU is given to use a drive that is served.
struct QemuArgs {
  std::string drive;
  std::string socket;
  bool vfio = false;  // it is that of an NVMe controller, else of a virtio disk
  std::string memory = "2G";
  int queues = 1;
  bool packed = false;
  bool boot = false;
};
// As words that a shell may split: no path with spaces.
std::string qemu_args(const QemuArgs& args);
// The JSON behind -device for a QEMU that speaks vfio-user (10.1 and later).
std::string vfio_qemu_device(const std::string& socket, bool boot = false);

}  // namespace cairn::server
