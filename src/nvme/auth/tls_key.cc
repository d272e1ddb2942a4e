// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/tls_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/crc32.h"
#include "crypto/base64.h"
#include "crypto/hkdf.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

namespace {

using crypto::Hash;

constexpr std::string_view kPrefix = "NVMeTLSkey-1:";
constexpr size_t kChecksumSize = 4;
constexpr size_t kKeyMax = 48;

bool fits(std::optional<Hash> binding, size_t size) {
  if (!binding) return size == 32 || size == kKeyMax;
  return size == crypto::digest_size(*binding) && size <= kKeyMax;
}

int number_of(std::optional<Hash> binding) {
  return !binding ? 0 : *binding == Hash::kSha256 ? 1 : 2;
}

}  // namespace

Result<TlsKey> TlsKey::parse(std::string_view text) {
  constexpr const char* kForm = "a TLS key has the form NVMeTLSkey-1:01:BASE64: (00, 01 or 02)";
  if (!text.starts_with(kPrefix) || !text.ends_with(':')) return fail(Errc::kInvalid, kForm);
  text.remove_prefix(kPrefix.size());
  if (text.size() < 4 || text[0] != '0' || text[1] < '0' || text[1] > '2' || text[2] != ':') {
    return fail(Errc::kInvalid, kForm);
  }
  std::optional<Hash> binding;
  if (text[1] != '0') binding = text[1] == '1' ? Hash::kSha256 : Hash::kSha384;
  auto bytes = crypto::from_base64(text.substr(3, text.size() - 4));
  if (!bytes) return fail(Errc::kInvalid, "the key within a TLS key is not base64");
  const size_t size = bytes->size() - std::min(bytes->size(), kChecksumSize);
  if (!fits(binding, size)) {
    crypto::wipe(*bytes);
    return fail(Errc::kInvalid,
                "the key within a TLS key has 32 bytes with 01, 48 with 02, either with 00");
  }
  const Bytes key = Bytes(*bytes).first(size);
  const bool sound = load<Le32>(Bytes(*bytes).subspan(size)) == crc32(key);
  std::optional<TlsKey> made;
  if (sound) made = make(binding, key);
  crypto::wipe(*bytes);
  if (!made) return fail(Errc::kCorrupt, "the checksum of the TLS key is wrong: a typing error?");
  return std::move(*made);
}

TlsKey TlsKey::make(std::optional<Hash> binding, Bytes key) {
  CHECK(fits(binding, key.size()), "keys are generated as long as their hash");
  TlsKey made;
  made.binding_ = binding;
  made.key_ = crypto::KeptSecret(key);
  return made;
}

std::string TlsKey::text() const {
  crypto::SecretBytes<kKeyMax + kChecksumSize> all(key().size() + kChecksumSize);
  std::ranges::copy(key(), all.mutable_bytes().begin());
  store(all.mutable_bytes().subspan(key().size()), Le32(crc32(key())));
  std::string encoded = crypto::to_base64(all.bytes());
  std::string text = fmt::format("{}{:02}:{}:", kPrefix, number_of(binding_), encoded);
  crypto::wipe(std::as_writable_bytes(std::span(encoded)));
  return text;
}

Result<TlsPsk> TlsKey::psk_of(TlsNames names, TlsIdentityVersion version) const {
  if (!fits_tls_identity(names.host) || !fits_tls_identity(names.subsystem)) {
    return fail(Errc::kInvalid, "an NQN with a space in it cannot be used with TLS");
  }
  const crypto::Digest retained =
      binding_ ? crypto::hkdf_derive(*binding_, key(), "HostNQN", as_bytes(names.host))
               : crypto::Digest(key());
  TlsPsk psk;
  psk.identity = {.version = version,
                  .hash = hash(),
                  .host_nqn = std::string(names.host),
                  .nqn = std::string(names.subsystem)};
  std::string context;
  if (version == TlsIdentityVersion::k1) {
    const crypto::Digest digest =
        crypto::hmac(hash(), retained.bytes(),
                     {as_bytes(names.host), as_bytes(" "), as_bytes(names.subsystem), as_bytes(" "),
                      as_bytes("NVMe-over-Fabrics")});
    psk.identity.digest = crypto::to_base64(digest.bytes());
    context = fmt::format("0{} {}", hash() == Hash::kSha256 ? 1 : 2, psk.identity.digest);
  } else {
    context = psk.identity.text();
  }
  if (context.size() > crypto::kHkdfContextMax) {
    return fail(Errc::kInvalid, "the NQNs are too long for a TLS identity of version 0");
  }
  psk.key = crypto::hkdf_derive(hash(), retained.bytes(), "nvme-tls-psk", as_bytes(context));
  return psk;
}

}  // namespace cairn::nvme
