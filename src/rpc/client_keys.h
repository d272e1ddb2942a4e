// SPDX-License-Identifier: Apache-2.0
// Who may call a server, and how each proves it: a name, a pre-shared key and a role.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "tls/psk.h"

namespace cairn::rpc {

// A reader looks, a writer does everything; a service says which of its methods need a writer.
enum class Role : uint8_t { kReader, kWriter };

// "reader" or "writer".
const char* text(Role role);
inline bool includes(Role role, Role needed) { return role >= needed; }

// A client's key, kept where core files leave it out. Move-only.
struct NamedKey {
  std::string name;      // of the client, for people
  std::string identity;  // what TLS calls the key; no secret, different for every key
  crypto::Hash hash = crypto::Hash::kSha256;
  crypto::KeptSecret key;

  tls::Psk psk() const {
    return {.identity = identity, .hash = hash, .key = crypto::Digest(key.bytes())};
  }
};

struct KnownClient {
  std::string name;
  Role role = Role::kReader;
};

// The clients of one server. Made once, then only read.
class ClientKeys {
 public:
  // kExists: there is a client of that name, or with that key.
  Result<void> add(NamedKey key, Role role);

  // The first identity that is known, with its key. kDenied.
  Result<tls::Psk> choose(const std::vector<std::string>& identities) const;
  // Whose identity that is, which choose() gave.
  KnownClient client_of(const std::string& identity) const;
  bool has_name(std::string_view name) const;
  bool empty() const { return keys_.empty(); }
  size_t size() const { return keys_.size(); }

 private:
  struct Known {
    NamedKey key;
    Role role;
  };
  std::map<std::string, Known, std::less<>> keys_;  // by identity
};

}  // namespace cairn::rpc
