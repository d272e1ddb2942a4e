// SPDX-License-Identifier: Apache-2.0
#include "tls/client_hello.h"

#include <cstdint>

namespace cairn::tls {

namespace {

constexpr size_t kLengthSize = 2;
constexpr size_t kAgeSize = 4;  // obfuscated_ticket_age, which means nothing for our keys

size_t length_at(Bytes bytes) {
  return std::to_integer<size_t>(bytes[0]) << 8 | std::to_integer<size_t>(bytes[1]);
}

}  // namespace

Result<std::vector<std::string>> offered_identities(Bytes extension) {
  constexpr const char* kBroken = "the client's list of keys breaks off";
  if (extension.size() < kLengthSize) return fail(Errc::kInvalid, kBroken);
  const size_t total = length_at(extension);
  Bytes rest = extension.subspan(kLengthSize);
  if (rest.size() < total) return fail(Errc::kInvalid, kBroken);
  rest = rest.first(total);
  std::vector<std::string> identities;
  while (!rest.empty() && identities.size() < kIdentitiesMax) {
    if (rest.size() < kLengthSize) return fail(Errc::kInvalid, kBroken);
    const size_t length = length_at(rest);
    rest = rest.subspan(kLengthSize);
    if (rest.size() < length + kAgeSize) return fail(Errc::kInvalid, kBroken);
    if (length > 0 && length <= kIdentityMax) {
      identities.emplace_back(as_text(rest.first(length)));
    }
    rest = rest.subspan(length + kAgeSize);
  }
  return identities;
}

}  // namespace cairn::tls
