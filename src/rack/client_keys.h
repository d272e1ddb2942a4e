// SPDX-License-Identifier: Apache-2.0
// The keys of those who use a rack's metadata, in the form in which people keep them: a file of
// lines, and TLS keys as hosts of the fabric have them.
//
//   # role  name  key
//   writer  box7  NVMeTLSkey-1:01:BASE64:
//   reader  graph NVMeTLSkey-1:01:BASE64:
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "nvme/auth/tls_key.h"
#include "rpc/client_keys.h"

namespace cairn::rack {

inline constexpr size_t kClientsMax = 512;  // of one server

// Stands for every rack's metadata where TLS keys are bound to a subsystem: a key that a host uses
// with a box as well is another one there.
inline constexpr std::string_view kMetadataNqn = "nqn.2026-11.io.cairn:metadata";

// The key as the client of that name uses it; so does its server. kInvalid: no such name.
Result<rpc::NamedKey> named_key(std::string_view name, const nvme::TlsKey& key);

// What a server's file says. kInvalid, kCorrupt, kExists, kLimit: what is wrong, and in which line
// (detail()). None of it shows any of a key.
Result<rpc::ClientKeys> parse_client_keys(std::string_view text);

// The client's name in an identity that a stranger offers; none: it is not one of ours.
std::optional<std::string> name_in(std::string_view identity);

}  // namespace cairn::rack
