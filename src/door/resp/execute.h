// SPDX-License-Identifier: Apache-2.0
// Running a command that may run now: its words are enough, and its client may.
#pragma once

#include <string>

#include "base/error.h"
#include "door/resp/command.h"
#include "task/task.h"

namespace cairn::door::resp {

// What one command or transaction may answer, or read.
inline constexpr uint64_t kReplyBytesMax = 16 * kv::kValueBytesMax;
inline constexpr char kTooMuchTogether[] = "the values are more than 256 MiB together";

// Done when the whole reply is there. `call` lives until then.
task::Task<void> execute(Call& call);

// The keys of a command or transaction fit: none is too long or empty, and where many values are
// needed they are not too much together. Else what to answer.
task::Task<Result<void>> check_keys(DoorState& door, const KeySet& keys, kv::Change::Needs needs);

// What a client hears when the keyspace failed.
std::string keyspace_error(const Error& error);

}  // namespace cairn::door::resp
