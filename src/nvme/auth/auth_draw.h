// SPDX-License-Identifier: Apache-2.0
// AuthDraw: the random numbers that one end brings into one authentication transaction.
#pragma once

#include <cstdint>

#include "crypto/dh.h"
#include "crypto/hash.h"
#include "env/env.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// Drawn anew for each transaction: a challenge that comes twice could be answered by a recording.
struct AuthDraw {
  crypto::Digest challenge{crypto::kDigestMax};  // cut to the length of the hash
  crypto::DhSecret exponent{crypto::kDhSecretSize};
  uint32_t sequence = 1;  // SEQNUM, not 0
  uint16_t transaction = 0;

  static AuthDraw from(env::Env& env) {
    AuthDraw draw;
    env.fill_secret(draw.challenge.mutable_bytes());
    env.fill_secret(draw.exponent.mutable_bytes());
    Le32 sequence;
    Le16 transaction;
    env.fill_secret(mutable_bytes_of(sequence));
    env.fill_secret(mutable_bytes_of(transaction));
    draw.sequence = sequence == 0 ? 1 : sequence.value();
    draw.transaction = transaction;
    return draw;
  }
};

}  // namespace cairn::nvme
