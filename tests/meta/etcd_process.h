// SPDX-License-Identifier: Apache-2.0
// EtcdProcess: an etcd of the test's own, at free ports of this machine, with a folder of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "env/address.h"
#include "meta/folder.h"

namespace cairn::meta_tests {

class EtcdProcess {
 public:
  static bool is_installed();

  // Starts; it serves a moment later.
  EtcdProcess();
  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  env::Address address() const { return env::Address::loopback(port_); }
  // As power loss of the process: no goodbye. And the same etcd again.
  void kill();
  void start();

 private:
  Folder folder_;
  uint16_t port_;
  uint16_t peer_port_;
  pid_t process_ = -1;
};

}  // namespace cairn::meta_tests
