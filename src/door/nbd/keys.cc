// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/keys.h"

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "crypto/hash.h"

namespace cairn::door::nbd {

namespace {

constexpr size_t kKeyMin = 16;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Empty when it is no key.
crypto::Digest parse_hex(std::string_view text) {
  const bool fits =
      text.size() % 2 == 0 && text.size() / 2 >= kKeyMin && text.size() / 2 <= crypto::kDigestMax;
  if (!fits) return {};
  crypto::Digest key(text.size() / 2);
  for (size_t i = 0; i < key.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return {};
    key.mutable_bytes()[i] = static_cast<std::byte>(high << 4 | low);
  }
  return key;
}

}  // namespace

Result<NbdKeys> NbdKeys::parse(std::string_view text) {
  NbdKeys keys;
  for (int32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t colon = line.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
      return fail(Errc::kInvalid, "not NAME:KEY in line", number);
    }
    const std::string_view name = line.substr(0, colon);
    const crypto::Digest key = parse_hex(line.substr(colon + 1));
    if (key.empty()) {
      return fail(Errc::kInvalid, "not a key of 32 to 128 hexadecimal digits in line", number);
    }
    if (std::ranges::find(keys.keys_, name, &decltype(keys.keys_)::value_type::first) !=
        keys.keys_.end()) {
      return fail(Errc::kInvalid, "a name for the second time in line", number);
    }
    keys.keys_.emplace_back(name, crypto::KeptSecret(key.bytes()));
  }
  if (keys.keys_.empty()) return fail(Errc::kInvalid, "no key");
  return keys;
}

Result<tls::Psk> NbdKeys::choose(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    for (const auto& [known, secret] : keys_) {
      if (known != name) continue;
      return tls::Psk{
          .identity = name, .hash = crypto::Hash::kSha256, .key = crypto::Digest(secret.bytes())};
    }
  }
  return fail(Errc::kDenied, "no key of that name");
}

std::vector<std::string> NbdKeys::names() const {
  std::vector<std::string> names;
  for (const auto& [name, secret] : keys_) names.push_back(name);
  return names;
}

}  // namespace cairn::door::nbd
