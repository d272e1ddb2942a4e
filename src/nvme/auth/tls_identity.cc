// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/tls_identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "crypto/base64.h"

namespace cairn::nvme {

namespace {

constexpr const char* kForm =
    "a TLS identity has the form 'NVMe0R01 HOSTNQN SUBNQN' or 'NVMe1R01 HOSTNQN SUBNQN DIGEST'";

// Up to the next space, which goes too.
std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

bool is_digest(std::string_view text, crypto::Hash hash) {
  const auto bytes = crypto::from_base64(text);
  return bytes && bytes->size() == crypto::digest_size(hash);
}

}  // namespace

bool fits_tls_identity(std::string_view nqn) {
  return !nqn.empty() && nqn.size() <= kNqnMax &&
         nqn.find_first_of(std::string_view(" \0", 2)) == std::string_view::npos;
}

Result<TlsIdentity> TlsIdentity::parse(std::string_view text) {
  if (text.size() > kTlsIdentityMax) return fail(Errc::kInvalid, "the TLS identity is too long");
  const bool ends_well = !text.ends_with(' ');
  const std::string_view head = next_word(text);
  const bool is_known =
      head == "NVMe0R01" || head == "NVMe0R02" || head == "NVMe1R01" || head == "NVMe1R02";
  if (!is_known || !ends_well) return fail(Errc::kInvalid, kForm);
  TlsIdentity identity;
  identity.version = head[4] == '0' ? TlsIdentityVersion::k0 : TlsIdentityVersion::k1;
  identity.hash = head[7] == '1' ? crypto::Hash::kSha256 : crypto::Hash::kSha384;
  identity.host_nqn = next_word(text);
  identity.nqn = next_word(text);
  if (!fits_tls_identity(identity.host_nqn) || !fits_tls_identity(identity.nqn)) {
    return fail(Errc::kInvalid, kForm);
  }
  if (identity.version == TlsIdentityVersion::k0) {
    if (!text.empty()) return fail(Errc::kInvalid, kForm);
    return identity;
  }
  if (!is_digest(text, identity.hash)) {
    return fail(Errc::kInvalid, "the digest of the TLS identity is not one of its hash");
  }
  identity.digest = text;
  return identity;
}

std::string TlsIdentity::text() const {
  std::string out = fmt::format("NVMe{}R0{} {} {}", static_cast<int>(version),
                                hash == crypto::Hash::kSha256 ? 1 : 2, host_nqn, nqn);
  if (version == TlsIdentityVersion::k1) out += " " + digest;
  return out;
}

}  // namespace cairn::nvme
