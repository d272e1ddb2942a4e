// SPDX-License-Identifier: Apache-2.0
// AddressKey: who is at an address, as far as that can be told from it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "env/address.h"

namespace cairn::env {

// The family and the bytes that tell one owner from another: addresses are told apart without their
// ports, IPv6 by its first half, which is what one owner has. All local sockets are one.
using AddressKey = std::array<uint8_t, 9>;

inline AddressKey key_of(const Address& address) {
  // An IPv4 host that came through an IPv6 socket (RFC 4291, 2.5.5.2).
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const std::span<const uint8_t> ip(address.ip);
  const bool is_mapped = address.family == Address::Family::kIp6 &&
                         std::ranges::equal(kMapped, ip.first(kMapped.size()));
  const Address::Family family = is_mapped ? Address::Family::kIp4 : address.family;
  AddressKey key{static_cast<uint8_t>(family)};
  if (is_mapped) {
    std::ranges::copy(ip.last(4), key.begin() + 1);
  } else if (family == Address::Family::kIp4) {
    std::ranges::copy(ip.first(4), key.begin() + 1);
  } else if (family == Address::Family::kIp6) {
    std::ranges::copy(ip.first(8), key.begin() + 1);
  }
  return key;
}

}  // namespace cairn::env
