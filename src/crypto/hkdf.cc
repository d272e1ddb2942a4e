// SPDX-License-Identifier: Apache-2.0
#include "crypto/hkdf.h"

#include <array>

#include "base/check.h"

namespace cairn::crypto {

Digest hkdf_derive(Hash hash, Bytes key, std::string_view label, Bytes context) {
  CHECK(label.size() <= kHkdfLabelMax && context.size() <= kHkdfContextMax);
  constexpr std::string_view kPrefix = "tls13 ";
  const size_t size = digest_size(hash);
  const std::array<std::byte, kDigestMax> no_salt{};
  const Digest extracted = hmac(hash, Bytes(no_salt).first(size), {key});
  // struct HkdfLabel; one block of output is enough, hence the counter stays 1.
  const std::array head = {std::byte{0}, static_cast<std::byte>(size),
                           static_cast<std::byte>(kPrefix.size() + label.size())};
  const std::byte context_size = static_cast<std::byte>(context.size());
  constexpr std::byte kCounter{1};
  return hmac(hash, extracted.bytes(),
              {head, as_bytes(kPrefix), as_bytes(label), Bytes(&context_size, 1), context,
               Bytes(&kCounter, 1)});
}

}  // namespace cairn::crypto
