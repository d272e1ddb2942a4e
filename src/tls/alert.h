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
  kIllegalParameter = 47,
  kDecryptError = 51,
  kProtocolVersion = 70,
  kInsufficientSecurity = 71,
  kInternalError = 80,
  kUnknownPskIdentity = 115,
};

// An alert that the peer sent instead of going on, as an error; its number is the detail. kDenied:
// it does not know our key, or has another; kUnsupported: no version or cipher in common; others
// kReset.
Error error_of(uint8_t alert);

}  // namespace cairn::tls
