// SPDX-License-Identifier: Apache-2.0
// Alerts: how TLS says what is wrong (RFC 8446, 6).
#pragma once

#include <cstdint>

#include "base/error.h"

namespace cairn::tls {

enum class Alert : uint8_t {
  kCloseNotify = 0,
  kUnexpectedMessage = 10,
  kHandshakeFailure = 40,
  kBadCertificate = 42,
  kUnsupportedCertificate = 43,
  kCertificateRevoked = 44,
  kCertificateExpired = 45,
  kCertificateUnknown = 46,
  kIllegalParameter = 47,
  kUnknownCa = 48,
  kAccessDenied = 49,
  kDecryptError = 51,
  kProtocolVersion = 70,
  kInsufficientSecurity = 71,
  kInternalError = 80,
  kUnknownPskIdentity = 115,
  kCertificateRequired = 116,
};

// An alert that the peer sent instead of going on, as an error; its number is the detail. kDenied:
// it does not know our key, or has another, or does not take our certificate; kUnsupported: no
// version or cipher in common; others kReset.
Error error_of(uint8_t alert);

}  // namespace cairn::tls
