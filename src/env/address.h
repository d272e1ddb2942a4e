// SPDX-License-Identifier: Apache-2.0
// Where a stream ends: an IP address and port, or the path of a local socket.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace cairn::env {

struct Address {
  enum class Family : uint8_t { kIp4, kIp6, kLocal };

  Family family = Family::kIp4;
  std::array<uint8_t, 16> ip{};  // network order; IPv4 in the first four
  uint16_t port = 0;
  std::string path;  // kLocal only

  static Address ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port);
  static Address loopback(uint16_t port) { return ip4(127, 0, 0, 1, port); }

  // "127.0.0.1:4420", "[::1]:4420", "unix:/run/cairn.sock". No names: those need a resolver.
  // kInvalid otherwise; the Error's text says which part.
  static Result<Address> parse(std::string_view text);
  // The same forms; text(parse(x)) is x in canonical form.
  std::string text() const;

  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace cairn::env
