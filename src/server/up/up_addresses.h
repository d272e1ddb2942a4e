// SPDX-License-Identifier: Apache-2.0
// Where `cairn up` can be reached: the usual ports, or others where those are taken.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "env/address.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::server {

// A place for clients. `or_any_port`: where the port is taken, another that is free.
struct UpDoor {
  env::Address at;
  bool or_any_port = false;
};

struct FreeAddresses {
  std::vector<env::Address> at;    // in the order of the doors
  std::vector<std::string> notes;  // sentences about ports that are others
};

// Of each door the address, or one that is free. `was_killed`: what a killed process still holds is
// waited for. The Problem says which address cannot be had, and what to do.
task::Task<Attempt<FreeAddresses>> free_addresses(env::Env& env, std::vector<UpDoor> doors,
                                                  bool was_killed);

}  // namespace cairn::server
