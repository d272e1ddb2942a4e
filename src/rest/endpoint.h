// SPDX-License-Identifier: Apache-2.0
// Endpoint: a drive behind HTTP as people write it.
//
//   http://10.0.0.7:8080/volumes/d0?size=1G&object=64K
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "env/address.h"

namespace cairn::rest {

inline constexpr uint16_t kHttpPort = 80;
inline constexpr uint32_t kObjectSizeMax = 1 << 20;
inline constexpr uint64_t kObjectsMax = uint64_t{1} << 32;  // eight hexadecimal digits

// HOST is an IP address, an IPv6 one in brackets, or a name. PATH is the folder of the objects,
// %XX as the server wants it. Options:
//   size=N        bytes of a new drive; one that exists may leave it out
//   object=N      bytes of an object, a power of two, block to 1M; 64K for a new drive
//   block=N       512 to 65536; 4096 for a new drive
//   connections=N 1 to 64, 8 by default
//   timeout_ms=N  of one attempt of a request, 10000 by default
//   retries=N     0 to 16, 3 by default
//   host=NAME     what to tell the server as its name, where HOST is only its address
//   check_ms=N    how often, at most, to see whether another took the drive; 1000 by default, 0:
//                 before each change
struct Endpoint {
  std::string host;  // as written, with the port, or as the option says: for the Host field
  std::string name;  // to be looked up; empty: `address` is known
  uint16_t port = kHttpPort;
  env::Address address;
  std::string path;  // "/volumes/d0"
  // None: what the drive has, or the default for a new one.
  std::optional<uint64_t> size;
  std::optional<uint32_t> object_size;
  std::optional<uint32_t> block_size;
  uint32_t connections = 8;
  Duration timeout = 10_s;
  uint32_t retries = 3;
  Duration check = 1_s;

  // What is wrong, as a sentence with the part in question, for the user.
  static std::expected<Endpoint, std::string> parse(std::string_view text);
};

// The text of a place, with the address that was found in place of the name: the same place, and
// nothing to look up.
std::string text_with_address(std::string_view text, const Endpoint& place);

// Whether a leaf of a stack is such a place.
inline bool is_place(std::string_view text) { return text.starts_with("http://"); }

}  // namespace cairn::rest
