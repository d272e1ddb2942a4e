// SPDX-License-Identifier: Apache-2.0
// Security: how a client's connection becomes one that nobody else can read or change, and whose
// ends know each other.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/client_keys.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"

namespace cairn::rpc {

// What a new connection is, and what goes with it.
struct Insecure {
  std::unique_ptr<env::Stream> stream;
  env::Address server;
  task::Gate& lingering;  // see TlsStream
  Duration timeout;
};

// One per client, on its core; outlives its connections.
class Security {
 public:
  virtual ~Security() = default;
  // kDenied: the server does not let us in, or is not the one it should be; kUnsupported: it speaks
  // no TLS, or not what we do; kTimedOut, kReset, kCancelled.
  virtual task::Task<Result<std::unique_ptr<env::Stream>>> secure(
      env::Env& env, Insecure plain, task::CancelToken token) const = 0;
  // Who we are to the server, for people: "'box7'". Empty: that cannot be said shortly.
  virtual std::string who() const = 0;
};

// What a client says to people when its server and it do not agree; a service has its own, which
// name the option to change.
struct ErrorTexts {
  const char* demands_tls = "the server demands TLS, and this client has no key";
  const char* lacks_tls = "the server speaks without TLS at this port";
  const char* unknown_key =
      "the server does not know this client's name, or has another key for it";
  const char* hung_up = "the server hung up";
  const char* closed = "the client was closed";
  const char* unanswered = "no server answered in time";
  const char* unreachable = "no server can be reached";
};

// A pre-shared key, as an rpc::Server asks for.
class KeySecurity final : public Security {
 public:
  explicit KeySecurity(NamedKey key, const ErrorTexts& texts = {})
      : key_(std::move(key)), texts_(texts) {}
  task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env, Insecure plain,
                                                          task::CancelToken token) const override;
  std::string who() const override { return "'" + key_.name + "'"; }

 private:
  const NamedKey key_;
  const ErrorTexts texts_;
  const tls::Context context_{tls::Role::kClient};
};

}  // namespace cairn::rpc
