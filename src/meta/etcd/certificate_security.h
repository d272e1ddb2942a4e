// SPDX-License-Identifier: Apache-2.0
// CertificateSecurity: TLS towards etcd, which shows a certificate and may ask for one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/task.h"
#include "tls/certificate.h"
#include "tls/context.h"

namespace cairn::meta::etcd {

// The server's certificate is for `name` or, when that is empty, for the address at which it is
// reached.
class CertificateSecurity final : public rpc::Security {
 public:
  // `certificate` passed check().
  CertificateSecurity(const tls::ClientCertificate& certificate, std::string name)
      : context_(certificate), name_(std::move(name)) {}
  task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env, rpc::Insecure plain,
                                                          task::CancelToken token) const override;
  std::string who() const override { return ""; }

 private:
  const tls::Context context_;
  const std::string name_;
};

}  // namespace cairn::meta::etcd
