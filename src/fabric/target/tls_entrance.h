// SPDX-License-Identifier: Apache-2.0
// TlsEntrance: how a connection to a listener that demands TLS comes to be one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/env.h"
#include "env/stream.h"
#include "fabric/target/connection.h"
#include "nvme/auth/tls_identity.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"
#include "tls/psk.h"

namespace cairn::fabric {

// What an encrypted connection is, and who is at its other end.
struct SecureStream {
  std::unique_ptr<env::Stream> stream;
  std::unique_ptr<const nvme::TlsIdentity> identity;
};

// One per connection, on its core; the keys stay on the control core.
class TlsEntrance final : private tls::PskKeeper {
 public:
  // `token` ends it early, as does the target's handshake_timeout.
  TlsEntrance(TargetCore& core, const tls::Context& context, task::CancelToken token)
      : core_(core), context_(context), token_(token) {}

  // None: it did not come in, and the registry knows why.
  task::Task<std::optional<SecureStream>> admit(std::unique_ptr<env::Stream> plain,
                                                task::Gate& lingering);

 private:
  task::Task<Result<tls::Psk>> choose(std::vector<std::string> identities) override;
  task::Task<void> note(const Error& error, bool speaks_nvme);

  TargetCore& core_;
  const tls::Context& context_;
  task::CancelToken token_;
  env::Address local_;
  env::Address peer_;
  std::optional<nvme::TlsIdentity> identity_;  // that was chosen
  bool was_noted_ = false;
};

// Whether bytes begin like a host's first PDU, or like a client's first record of TLS.
bool looks_like_ic_req(Bytes bytes);
bool looks_like_client_hello(Bytes bytes);

}  // namespace cairn::fabric
