// SPDX-License-Identifier: Apache-2.0
// Context: what all connections of one role agree on. TLS 1.3 alone, with (EC)DHE and a pre-shared
// key, or where one was given with certificates; no tickets, no early data.
#pragma once

#include <cstdint>
#include <memory>

#include "tls/certificate.h"

namespace cairn::tls {

enum class Role : uint8_t { kClient, kServer };

// Made once and used by any number of connections of one core, which may outlive it.
class Context {
 public:
  explicit Context(Role role);
  // A server that shows a certificate, which passed check(), and has no pre-shared keys.
  explicit Context(const Certificate& certificate);
  // A client of servers that show a certificate, likewise.
  explicit Context(const ClientCertificate& certificate);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Role role() const { return role_; }
  bool has_certificate() const { return has_certificate_; }

 private:
  friend class Engine;
  struct Free {
    void operator()(void* context) const;
  };
  Role role_;
  bool has_certificate_ = false;
  std::unique_ptr<void, Free> context_;  // an SSL_CTX
};

}  // namespace cairn::tls
