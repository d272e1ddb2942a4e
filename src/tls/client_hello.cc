// SPDX-License-Identifier: Apache-2.0
#include "tls/client_hello.h"

#include <algorithm>
#include <cstdint>

namespace cairn::tls {

namespace {

constexpr size_t kNumberSize = 2;
constexpr size_t kAgeSize = 4;  // obfuscated_ticket_age, which means nothing for our keys

size_t number_at(Bytes bytes) {
  return std::to_integer<size_t>(bytes[0]) << 8 | std::to_integer<size_t>(bytes[1]);
}

}  // namespace

Result<std::vector<std::string>> offered_identities(Bytes extension) {
  constexpr const char* kBroken = "the client's list of keys breaks off";
  if (extension.size() < kNumberSize) return fail(Errc::kInvalid, kBroken);
  const size_t total = number_at(extension);
  Bytes rest = extension.subspan(kNumberSize);
  if (rest.size() < total) return fail(Errc::kInvalid, kBroken);
  rest = rest.first(total);
  std::vector<std::string> identities;
  while (!rest.empty() && identities.size() < kIdentitiesMax) {
    if (rest.size() < kNumberSize) return fail(Errc::kInvalid, kBroken);
    const size_t length = number_at(rest);
    rest = rest.subspan(kNumberSize);
    if (rest.size() < length + kAgeSize) return fail(Errc::kInvalid, kBroken);
    if (length > 0 && length <= kIdentityMax) {
      identities.emplace_back(as_text(rest.first(length)));
    }
    rest = rest.subspan(length + kAgeSize);
  }
  return identities;
}

bool offers_tls13(Bytes extension) {
  constexpr size_t kTls13 = 0x0304;
  if (extension.empty()) return false;
  Bytes rest = extension.subspan(1);
  rest = rest.first(std::min(rest.size(), std::to_integer<size_t>(extension[0])));
  for (; rest.size() >= kNumberSize; rest = rest.subspan(kNumberSize)) {
    if (number_at(rest) == kTls13) return true;
  }
  return false;
}

}  // namespace cairn::tls
