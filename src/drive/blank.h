// SPDX-License-Identifier: Apache-2.0
// Whether a drive is blank: what a service asks before it makes a drive its own.
//
// A service that keeps something of its own takes drives that have its label, and blank ones. That
// the first blocks are zero says little: btrfs leaves 64 KiB free, an image may begin with a gap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::drive {

// Something on a drive that would be lost.
struct Remains {
  std::string what;   // "a btrfs file system", "data"
  uint64_t byte = 0;  // where it was seen
};

// What a drive holds; none: it is blank as far as can be told. Read are the first and the last MiB,
// all the rest where the drive is small, else the beginnings of what is no hole and some hundred
// blocks spread over it, for a bounded time. Holes are believed. Errors of the drive.
task::Task<Result<std::optional<Remains>>> find_remains(env::Env& env, Drive& drive,
                                                        task::CancelToken token = {});

// The same as one error, kInvalid, with the number of the drive (from 1) among those that the
// service was given: whoever opened it says what was found (stack_nodes.cc).
task::Task<Result<void>> check_blank(env::Env& env, Drive& drive, int32_t number,
                                     task::CancelToken token = {});
Error not_blank(int32_t number);
bool is_not_blank(const Error& error);

// What begins there by its signature, if `head` are the first bytes of a medium and `tail` its last
// ones; none: nothing that is known. `size` is that of the medium.
std::optional<Remains> find_signature(Bytes head, Bytes tail, uint64_t size);

}  // namespace cairn::drive
