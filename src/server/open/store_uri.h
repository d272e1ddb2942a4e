// SPDX-License-Identifier: Apache-2.0
// Where metadata is, as users write it.
//
//   meta://127.0.0.1:4430             what `cairn rack serve` serves; several with commas between
//   etcd://10.0.0.1:2379,10.0.0.2:2379   members of an etcd cluster
//   rocks:/var/lib/cairn/meta         a folder, for one process at a time
//
//   meta://10.0.0.9:4430?tls_key=FILE&name=NAME    through TLS, as the client of that name
//   etcd://10.0.0.1:2379?ca=FILE&cert=FILE&key=FILE    through TLS, with certificates; name=NAME:
//                                                      the server's, if not its address
//
// Values are percent-encoded where they need it, as in URIs of drives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "env/address.h"

namespace cairn::server {

inline constexpr uint16_t kMetaPort = 4430;
inline constexpr std::string_view kDefaultStore = "meta://127.0.0.1:4430";

struct StoreUri {
  enum class Kind : uint8_t { kServed, kEtcd, kFolder };
  Kind kind = Kind::kServed;
  std::vector<env::Address> servers;  // at least one, unless it is a folder
  std::string folder;
  std::string name;  // of meta://: by which the server knows the key; of etcd://: the server's
  // Files; empty: without TLS.
  std::string tls_key;  // of meta://
  std::string ca;       // of etcd://, as the next two
  std::string cert;     // may be empty with its key: the client shows none
  std::string key;

  // The Problem says what is wrong and what could be written.
  static Attempt<StoreUri> parse(std::string_view text);
};

}  // namespace cairn::server
