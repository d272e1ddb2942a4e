// SPDX-License-Identifier: Apache-2.0
// Keys of clients and servers of these tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "meta/client_keys.h"
#include "meta/security.h"

namespace cairn::meta_tests {

// `fill` tells keys of one name apart.
inline meta::NamedKey key_of(const std::string& name, uint8_t fill = 1) {
  crypto::Digest key(32);
  std::ranges::fill(key.mutable_bytes(), std::byte{fill});
  return {.name = name,
          .identity = name + " " + std::to_string(fill),
          .hash = crypto::Hash::kSha256,
          .key = crypto::KeptSecret(key.bytes())};
}

// A server's: "w" may write, "r" may read.
inline std::shared_ptr<const meta::ClientKeys> known_clients() {
  auto keys = std::make_shared<meta::ClientKeys>();
  CHECK(keys->add(key_of("w"), meta::Role::kWriter).has_value());
  CHECK(keys->add(key_of("r"), meta::Role::kReader).has_value());
  return keys;
}

inline std::shared_ptr<const meta::Security> as_client(const std::string& name, uint8_t fill = 1) {
  return std::make_shared<meta::KeySecurity>(key_of(name, fill));
}

}  // namespace cairn::meta_tests
