// SPDX-License-Identifier: Apache-2.0
// Context: what all connections of one role agree on. TLS 1.3 alone, with a pre-shared key and
// (EC)DHE; no certificates, no tickets, no early data.
#pragma once

#include <cstdint>
#include <memory>

namespace cairn::tls {

enum class Role : uint8_t { kClient, kServer };

// Made once and used by any number of connections of one core, which may outlive it.
class Context {
 public:
  explicit Context(Role role);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Role role() const { return role_; }

 private:
  friend class Engine;
  struct Free {
    void operator()(void* context) const;
  };
  Role role_;
  std::unique_ptr<void, Free> context_;  // an SSL_CTX
};

}  // namespace cairn::tls
