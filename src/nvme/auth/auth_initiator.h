// SPDX-License-Identifier: Apache-2.0
// AuthInitiator: the host's side of one authentication transaction, message by message. Knows
// neither time nor transport.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "crypto/dh.h"
#include "crypto/hash.h"
#include "nvme/auth/auth_draw.h"
#include "nvme/auth/auth_message.h"
#include "nvme/auth/auth_policy.h"
#include "nvme/auth/auth_proof.h"

namespace cairn::nvme {

// negotiate() is sent, what comes is given to reply(), whose message is sent, and what comes then
// to finish(). Each room has kAuthMessageMax bytes; each call gives the bytes it used.
//
// Errors: kDenied (a proof is wrong, the host's or the controller's), kUnsupported (no hash or
// group in common), kCorrupt (a message is malformed or out of turn). After an error of this end's
// own, failure() is to be sent.
class AuthInitiator {
 public:
  // Borrows its parameters. With a controller key the controller has to prove itself too.
  struct Setup {
    const AuthKeys& keys;
    const AuthMeans& means;
    AuthNames names;
    const AuthDraw& draw;
  };
  explicit AuthInitiator(const Setup& setup) : setup_(setup) {}

  size_t negotiate(MutableBytes room) const;
  Result<size_t> reply(Bytes challenge, MutableBytes room);
  // 0: there is nothing left to send.
  Result<size_t> finish(Bytes success, MutableBytes room);
  // None: the controller has ended the transaction itself.
  std::optional<size_t> failure(MutableBytes room) const;

 private:
  std::unexpected<Error> refuse(AuthFailure failure, const Error& error);
  // What the controller says instead of what was expected.
  std::unexpected<Error> explain(Bytes message, AuthFailure failure);

  Setup setup_;
  AuthHash hash_{};
  crypto::Digest expected_;  // the controller's proof; empty: none is wanted
  std::optional<AuthFailure> failure_;
};

}  // namespace cairn::nvme
