// SPDX-License-Identifier: Apache-2.0
// Serving drives at NBD doors in any world, from the first drive to the last reply.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/drive/open.h"
#include "apps/problem.h"
#include "base/units.h"
#include "door/nbd/keys.h"
#include "env/address.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::apps {

struct DriveServeOptions {
  std::vector<DriveWords> drives;  // with names, each another
  std::vector<env::Address> nbd;
  bool read_only = false;
  const door::NbdKeys* keys = nullptr;  // clients must come through TLS; null: without
  Duration drain_timeout = 10_s;
  // Clients can connect at these addresses.
  std::function<void(const std::vector<env::Address>&)> ready;
};

// Gives every drive a name: d0, d1 and so on where none was given. The Problem: a name comes twice.
Attempt<void> name_drives(std::vector<DriveWords>& drives);

// Serves until the world is asked to stop, then answers what is in flight. The Problem says what
// could not be opened or bound, and what to do. `options` outlives the task.
task::Task<Attempt<void>> serve_drives(env::Env& env, const DriveServeOptions& options);

// What a client on this machine calls an export, for nbdinfo, qemu and all that use libnbd: the
// user's name is for TLS, empty without.
std::string nbd_uri(const env::Address& at, const std::string& name, const std::string& user);

}  // namespace cairn::apps
