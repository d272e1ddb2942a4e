// SPDX-License-Identifier: Apache-2.0
// A host's connection through TLS.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "nvme/auth/tls_key.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"
#include "tls/engine.h"
#include "tls/psk.h"

namespace cairn::fabric {

// What it takes: the host's key, and between which names it is used.
struct HostTls {
  std::shared_ptr<const tls::Context> context;
  std::shared_ptr<const nvme::TlsKey> key;
  std::string host_nqn;
  std::string nqn;
  nvme::TlsIdentityVersion version = nvme::TlsIdentityVersion::k1;
};

struct SecureWish {
  Duration timeout;
  task::Gate& lingering;  // see TlsStream
};

// What the two ends say when one speaks TLS and the other does not.
inline constexpr const char* kTargetDemandsTls = "the target demands TLS at this port";
inline constexpr const char* kTargetIsPlain =
    "the target speaks plain NVMe/TCP at this port, without TLS";

// Whether bytes that answer an ICReq are an alert of TLS.
bool looks_like_tls_alert(Bytes bytes);

// Shakes hands. kDenied: the target does not know this host's key, or has another; kUnsupported: it
// speaks no TLS, or not what we do; kInvalid: names that cannot be used with TLS; kReset,
// kTimedOut, kCancelled.
task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env,
                                                        std::unique_ptr<env::Stream> plain,
                                                        const HostTls& tls, SecureWish wish,
                                                        task::CancelToken token);

// The key in the form that TLS takes; kInvalid as above.
Result<tls::Psk> psk_of(const HostTls& tls);
// A handshake's error in this host's terms.
Error handshake_error(const Error& error, const tls::HandshakeReport& report);

}  // namespace cairn::fabric
