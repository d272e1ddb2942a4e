// SPDX-License-Identifier: Apache-2.0
// Certificate: what a server shows to clients that come without a pre-shared key.
#pragma once

#include <string>

#include "base/error.h"

namespace cairn::tls {

// PEM texts, as openssl and certtool write them. Made once, then read by every core.
struct Certificate {
  std::string chain;    // the server's own first, then those that signed it
  std::string key;      // of the first
  std::string clients;  // who signs the certificates that clients must show; empty: they need none
};

// kInvalid, with what is wrong: a text holds no certificate or no key, or another's key.
Result<void> check(const Certificate& certificate);
// For Context: has an SSL_CTX show it. Errors as check().
Result<void> use_certificate(void* ssl_context, const Certificate& certificate);

}  // namespace cairn::tls
