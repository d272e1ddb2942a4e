// SPDX-License-Identifier: Apache-2.0
#include "volume/boxes/box_identity.h"

#include <algorithm>
#include <span>

#include "base/bytes.h"
#include "crypto/hash.h"

namespace cairn::volume {

BoxIdentity box_identity(std::string_view name) {
  constexpr std::string_view kPurpose = "cairn volume host ";
  const crypto::Digest digest =
      crypto::digest(crypto::Hash::kSha256, {as_bytes(kPurpose), as_bytes(name)});
  BoxIdentity identity;
  std::ranges::copy(digest.bytes().first(identity.host_id.size()),
                    std::as_writable_bytes(std::span(identity.host_id)).begin());
  identity.host_id[6] = static_cast<uint8_t>((identity.host_id[6] & 0x0f) | 0x40);  // RFC 4122, 4.4
  identity.host_id[8] = static_cast<uint8_t>((identity.host_id[8] & 0x3f) | 0x80);
  identity.key = load<uint64_t>(digest.bytes().subspan(identity.host_id.size())) | 1;
  return identity;
}

}  // namespace cairn::volume
