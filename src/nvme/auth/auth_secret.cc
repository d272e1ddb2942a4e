// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_secret.h"

#include <fmt/format.h>

#include <vector>

#include "base/check.h"
#include "base/crc32.h"
#include "crypto/base64.h"
#include "nvme/auth/auth_message.h"

namespace cairn::nvme {

namespace {

constexpr std::string_view kPrefix = "DHHC-1:";
constexpr size_t kChecksumSize = 4;

bool is_key_size(size_t size) { return size == 32 || size == 48 || size == 64; }

}  // namespace

Result<AuthSecret> AuthSecret::parse(std::string_view text) {
  constexpr const char* kForm = "a secret has the form DHHC-1:00:BASE64: (00, 01, 02 or 03)";
  if (!text.starts_with(kPrefix) || !text.ends_with(':')) return fail(Errc::kInvalid, kForm);
  text.remove_prefix(kPrefix.size());
  if (text.size() < 4 || text[0] != '0' || text[1] < '0' || text[1] > '3' || text[2] != ':') {
    return fail(Errc::kInvalid, kForm);
  }
  const std::optional<AuthHash> hash = to_auth_hash(static_cast<uint8_t>(text[1] - '0'));
  auto bytes = crypto::from_base64(text.substr(3, text.size() - 4));
  if (!bytes) return fail(Errc::kInvalid, "the key within a secret is not base64");
  if (bytes->size() < kChecksumSize || !is_key_size(bytes->size() - kChecksumSize)) {
    crypto::wipe(*bytes);
    return fail(Errc::kInvalid, "the key within a secret has 32, 48 or 64 bytes");
  }
  const Bytes key = Bytes(*bytes).first(bytes->size() - kChecksumSize);
  const bool sound = load<Le32>(Bytes(*bytes).subspan(key.size())) == crc32(key);
  std::optional<AuthSecret> secret;
  if (sound) secret = make(hash, key);
  crypto::wipe(*bytes);
  if (!secret) return fail(Errc::kCorrupt, "the checksum of the secret is wrong: a typing error?");
  return std::move(*secret);
}

AuthSecret AuthSecret::make(std::optional<AuthHash> hash, Bytes key) {
  CHECK(is_key_size(key.size()), "keys are generated with one of the three sizes");
  AuthSecret secret;
  secret.hash_ = hash;
  secret.key_ = crypto::KeptSecret(key);
  return secret;
}

std::string AuthSecret::text() const {
  crypto::SecretBytes<64 + kChecksumSize> all(key().size() + kChecksumSize);
  std::ranges::copy(key(), all.mutable_bytes().begin());
  store(all.mutable_bytes().subspan(key().size()), Le32(crc32(key())));
  std::string encoded = crypto::to_base64(all.bytes());
  std::string text =
      fmt::format("{}{:02}:{}:", kPrefix, hash_ ? static_cast<int>(*hash_) : 0, encoded);
  crypto::wipe(std::as_writable_bytes(std::span(encoded)));
  return text;
}

crypto::Digest AuthSecret::key_of(std::string_view nqn) const {
  return hash_ ? bind_to_name(*hash_, key(), nqn) : crypto::Digest(key());
}

crypto::Digest bind_to_name(AuthHash hash, Bytes key, std::string_view nqn) {
  return crypto::hmac(hash_of(hash), key, {as_bytes(nqn), as_bytes("NVMe-over-Fabrics")});
}

}  // namespace cairn::nvme
