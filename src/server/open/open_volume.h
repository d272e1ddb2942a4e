// SPDX-License-Identifier: Apache-2.0
// An elastic volume as a drive of a stack:
//
//   volume:NAME                                     of the pool of this user's arbiter
//   volume:NAME,arbiter=10.0.0.1:4440,arbiter=10.0.0.2:4440
//   volume:NAME@SNAPSHOT                            what it held then, to be read
//   volume:NAME,take-over=yes                       although somebody else has it open
//   volume:NAME,view=no,order=no,shares=no          without telling the view of its requests,
//                                                   ordering them, or holding them to its share
//
// An arbiter= is as in ArbiterUri; options after '?' may follow the last one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "drive/drive.h"
#include "env/env.h"
#include "server/open/arbiter_uri.h"
#include "task/task.h"

namespace cairn::server {

struct VolumeUri {
  std::string name;
  ArbiterUri arbiter;
  bool take_over = false;
  bool notes = true;  // volume/steering/steering.h
  bool orders = true;
  bool holds = true;

  // The Problem says what is wrong and what could be written.
  static Attempt<VolumeUri> parse(std::string_view text);
};

// Whether a leaf names a volume, well or not.
bool is_volume(std::string_view text);

// Open for this process, until it is closed. The Problem says why it is not, and what to do.
task::Task<Attempt<std::unique_ptr<drive::Drive>>> open_volume(env::Env& env, VolumeUri uri);

}  // namespace cairn::server
