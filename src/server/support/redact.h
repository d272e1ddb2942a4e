// SPDX-License-Identifier: Apache-2.0
// Text without its secrets, for people who should not have them.
#pragma once

#include <string>
#include <string_view>

namespace cairn::server {

// Any bytes. What stands in for a secret is "[removed]":
//   - what follows a name like password, secret, token, psk, or one that ends with key, where it is
//     not the path of a file: an absolute one, or one with an ending like .key;
//   - keys as NVMe writes them, DHHC-1:... and NVMeTLSkey-1:..., and private keys in PEM;
//   - what is shown to HTTP servers: Authorization, Bearer, Basic; a user's name and password
//   before
//     an @ in a URI;
//   - words of 32 letters and more that look drawn: base64 and hex, but no UUIDs and hashes of
//   commits
//     of 40 letters.
std::string redact(std::string_view text);

}  // namespace cairn::server
