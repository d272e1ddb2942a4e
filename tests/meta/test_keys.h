// SPDX-License-Identifier: Apache-2.0
// Keys of clients and servers of these tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "meta/remote_store.h"
#include "rpc/client_keys.h"
#include "rpc/security.h"

namespace cairn::meta_tests {

// `fill` tells keys of one name apart.
inline rpc::NamedKey key_of(const std::string& name, uint8_t fill = 1) {
  crypto::Digest key(32);
  std::ranges::fill(key.mutable_bytes(), std::byte{fill});
  return {.name = name,
          .identity = name + " " + std::to_string(fill),
          .hash = crypto::Hash::kSha256,
          .key = crypto::KeptSecret(key.bytes())};
}

// A server's: "w" may write, "r" may read.
inline std::shared_ptr<const rpc::ClientKeys> known_clients() {
  auto keys = std::make_shared<rpc::ClientKeys>();
  CHECK(keys->add(key_of("w"), rpc::Role::kWriter).has_value());
  CHECK(keys->add(key_of("r"), rpc::Role::kReader).has_value());
  return keys;
}

inline std::shared_ptr<const rpc::Security> as_client(const std::string& name, uint8_t fill = 1) {
  return std::make_shared<rpc::KeySecurity>(key_of(name, fill), meta::error_texts());
}

}  // namespace cairn::meta_tests
