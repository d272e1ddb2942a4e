// SPDX-License-Identifier: Apache-2.0
// Certificates: what a server shows to clients that come without a pre-shared key, and what a
// client of others' servers trusts and shows.
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

struct ClientCertificate {
  std::string ca;     // who signs the certificates that servers must show
  std::string chain;  // the client's own first, then those that signed it; empty: it shows none
  std::string key;    // of the first
};

// kInvalid, with what is wrong: a text holds no certificate or no key, or another's key.
Result<void> check(const Certificate& certificate);
Result<void> check(const ClientCertificate& certificate);
// For Context: has an SSL_CTX show it. Errors as check().
Result<void> use_certificate(void* ssl_context, const Certificate& certificate);
Result<void> use_certificate(void* ssl_context, const ClientCertificate& certificate);

}  // namespace cairn::tls
