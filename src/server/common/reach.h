// SPDX-License-Identifier: Apache-2.0
// How those who connect name an address that a server listens at.
#pragma once

#include <string>

#include "env/address.h"

namespace cairn::server {

// How a host on this machine names an address we listen at: "127.0.0.1" and "4420".
struct Reach {
  std::string host;  // IPv6 without brackets
  std::string port;
};
Reach reach(const env::Address& at);

// Whether only processes of this machine reach it.
bool is_of_this_machine(const env::Address& at);

}  // namespace cairn::server
