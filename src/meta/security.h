// SPDX-License-Identifier: Apache-2.0
// Security: how a client's connection to a metadata server becomes one that nobody else can read
// or change, and whose ends know each other.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "meta/client_keys.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/certificate.h"
#include "tls/context.h"

namespace cairn::meta {

// What a new connection is, and what goes with it.
struct Insecure {
  std::unique_ptr<env::Stream> stream;
  env::Address server;
  task::Gate& lingering;  // see TlsStream
  Duration timeout;
};

// One per store, on its core; outlives its connections.
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

// A pre-shared key, as a meta::Server asks for.
class KeySecurity final : public Security {
 public:
  explicit KeySecurity(NamedKey key) : key_(std::move(key)) {}
  task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env, Insecure plain,
                                                          task::CancelToken token) const override;
  std::string who() const override { return "'" + key_.name + "'"; }

 private:
  const NamedKey key_;
  const tls::Context context_{tls::Role::kClient};
};

// Certificates, as etcd has them. The server's is for `name` or, when that is empty, for the
// address at which it is reached.
class CertificateSecurity final : public Security {
 public:
  // `certificate` passed check().
  CertificateSecurity(const tls::ClientCertificate& certificate, std::string name)
      : context_(certificate), name_(std::move(name)) {}
  task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env, Insecure plain,
                                                          task::CancelToken token) const override;
  std::string who() const override { return ""; }

 private:
  const tls::Context context_;
  const std::string name_;
};

}  // namespace cairn::meta
