// SPDX-License-Identifier: Apache-2.0
#include "tls/alert.h"

#include <algorithm>
#include <array>

namespace cairn::tls {

namespace {

struct Text {
  uint8_t alert;
  const char* text;
};
// RFC 8446, B.2.
constexpr std::array kTexts = {
    Text{0, "the peer sent the TLS alert close_notify"},
    Text{10, "the peer sent the TLS alert unexpected_message"},
    Text{20, "the peer sent the TLS alert bad_record_mac"},
    Text{22, "the peer sent the TLS alert record_overflow"},
    Text{40, "the peer sent the TLS alert handshake_failure"},
    Text{42, "the peer sent the TLS alert bad_certificate"},
    Text{43, "the peer sent the TLS alert unsupported_certificate"},
    Text{44, "the peer sent the TLS alert certificate_revoked"},
    Text{45, "the peer sent the TLS alert certificate_expired"},
    Text{46, "the peer sent the TLS alert certificate_unknown"},
    Text{47, "the peer sent the TLS alert illegal_parameter"},
    Text{48, "the peer sent the TLS alert unknown_ca"},
    Text{49, "the peer sent the TLS alert access_denied"},
    Text{50, "the peer sent the TLS alert decode_error"},
    Text{51, "the peer sent the TLS alert decrypt_error"},
    Text{70, "the peer sent the TLS alert protocol_version"},
    Text{71, "the peer sent the TLS alert insufficient_security"},
    Text{80, "the peer sent the TLS alert internal_error"},
    Text{86, "the peer sent the TLS alert inappropriate_fallback"},
    Text{90, "the peer sent the TLS alert user_canceled"},
    Text{109, "the peer sent the TLS alert missing_extension"},
    Text{110, "the peer sent the TLS alert unsupported_extension"},
    Text{112, "the peer sent the TLS alert unrecognized_name"},
    Text{113, "the peer sent the TLS alert bad_certificate_status_response"},
    Text{115, "the peer sent the TLS alert unknown_psk_identity"},
    Text{116, "the peer wants to see a certificate (TLS alert certificate_required)"},
    Text{120, "the peer sent the TLS alert no_application_protocol"},
};

const char* text_of(uint8_t alert) {
  const auto found = std::ranges::find(kTexts, alert, &Text::alert);
  return found == kTexts.end() ? "the peer sent a TLS alert without a name" : found->text;
}

Errc code_of(uint8_t alert) {
  switch (static_cast<Alert>(alert)) {
    case Alert::kUnknownPskIdentity:
    case Alert::kBadCertificate:
    case Alert::kUnsupportedCertificate:
    case Alert::kCertificateRevoked:
    case Alert::kCertificateExpired:
    case Alert::kCertificateUnknown:
    case Alert::kUnknownCa:
    case Alert::kAccessDenied:
    case Alert::kCertificateRequired:
    case Alert::kHandshakeFailure:
    case Alert::kIllegalParameter:
    case Alert::kDecryptError:
      return Errc::kDenied;
    case Alert::kProtocolVersion:
    case Alert::kInsufficientSecurity:
      return Errc::kUnsupported;
    default:
      return Errc::kReset;
  }
}

}  // namespace

Error error_of(uint8_t alert) { return {code_of(alert), text_of(alert), alert}; }

}  // namespace cairn::tls
