// SPDX-License-Identifier: Apache-2.0
// EtcdProcess: an etcd of the test's own, at free ports of this machine, with a folder of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "env/address.h"
#include "meta/etcd/lines.h"
#include "meta/folder.h"

namespace cairn::meta_tests {

class EtcdProcess {
 public:
  enum class Tls : bool { kNo, kYes };
  static bool is_installed();

  // Starts; it serves a moment later. With TLS it shows a certificate, and wants to see one.
  explicit EtcdProcess(Tls tls = Tls::kNo);
  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  env::Address address() const { return env::Address::loopback(port_); }
  // For a client of it, that shows a certificate where it has to, or shows none.
  enum class Shows : bool { kNothing, kCertificate };
  meta::etcd::LinesOptions client_options(Shows shows = Shows::kCertificate) const;
  // As power loss of the process: no goodbye. And the same etcd again.
  void kill();
  void start();

 private:
  Folder folder_;
  Tls tls_;
  uint16_t port_;
  uint16_t peer_port_;
  pid_t process_ = -1;
};

}  // namespace cairn::meta_tests
