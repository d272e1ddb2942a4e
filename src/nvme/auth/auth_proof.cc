// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_proof.h"

#include "nvme/auth/auth_message.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

namespace {

struct Prover {
  std::string_view role;
  std::string_view nqn;
  std::string_view peer;
};

// With a DH group the challenge is bound to what only the two ends of this exchange know.
crypto::Digest bound_challenge(const AuthChallenged& challenged) {
  if (challenged.shared.empty()) return crypto::Digest(challenged.challenge);
  const crypto::Hash hash = hash_of(challenged.hash);
  const crypto::Digest session_key = crypto::digest(hash, {challenged.shared});
  return crypto::hmac(hash, session_key.bytes(), {challenged.challenge});
}

crypto::Digest prove(const AuthSecret& secret, const Prover& prover,
                     const AuthChallenged& challenged) {
  const Le32 sequence = challenged.sequence;
  const Le16 transaction = challenged.transaction;
  constexpr std::byte kNoSecureChannel{0};
  constexpr std::byte kSeparator{0};
  const crypto::Digest key = secret.key_of(prover.nqn);
  const crypto::Digest challenge = bound_challenge(challenged);
  return crypto::hmac(
      hash_of(challenged.hash), key.bytes(),
      {challenge.bytes(), bytes_of(sequence), bytes_of(transaction), Bytes(&kNoSecureChannel, 1),
       as_bytes(prover.role), as_bytes(prover.nqn), Bytes(&kSeparator, 1), as_bytes(prover.peer)});
}

}  // namespace

crypto::Digest host_proof(const AuthSecret& secret, const AuthNames& names,
                          const AuthChallenged& challenged) {
  return prove(secret, {"HostHost", names.host, names.subsystem}, challenged);
}

crypto::Digest controller_proof(const AuthSecret& secret, const AuthNames& names,
                                const AuthChallenged& challenged) {
  return prove(secret, {"Controller", names.subsystem, names.host}, challenged);
}

}  // namespace cairn::nvme
