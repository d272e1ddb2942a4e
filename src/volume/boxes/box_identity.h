// SPDX-License-Identifier: Apache-2.0
// BoxIdentity: by what boxes know somebody with a name. It is made from the name alone, so that an
// arbiter can fence a client of which it knows no more.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cairn::volume {

struct BoxIdentity {
  std::array<uint8_t, 16> host_id{};  // a random UUID, as far as boxes can tell
  uint64_t key = 0;                   // of its registrations; never 0
};

BoxIdentity box_identity(std::string_view name);

}  // namespace cairn::volume
