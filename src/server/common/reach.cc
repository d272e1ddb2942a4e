// SPDX-License-Identifier: Apache-2.0
#include "server/common/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "env/address_key.h"

namespace cairn::server {

Reach reach(const env::Address& at) {
  env::Address near = at;
  if (std::ranges::all_of(at.ip, [](uint8_t byte) { return byte == 0; })) {
    near = env::Address::loopback(at.port);
    if (at.family == env::Address::Family::kIp6) {
      near = at;
      near.ip[15] = 1;
    }
  }
  std::string host = near.text();
  host.resize(host.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {.host = std::move(host), .port = fmt::format("{}", at.port)};
}

bool is_of_this_machine(const env::Address& at) {
  if (at.family == env::Address::Family::kLocal) return true;
  const env::Address loopback6 = *env::Address::parse("[::1]:1");
  const env::AddressKey key = env::key_of(at);
  return at.ip == loopback6.ip || (key[0] == env::key_of(env::Address::loopback(1))[0] &&
                                   key[1] == env::Address::loopback(1).ip[0]);
}

}  // namespace cairn::server
