// SPDX-License-Identifier: Apache-2.0
// Ranges of drives to and from files, several requests in flight, in bounded memory.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/nvme/byte_file.h"
#include "apps/nvme/progress.h"
#include "apps/nvme/range.h"
#include "base/problem.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::apps {

// All bytes of the range are in the output, in order. The stop token ends it, as the others here.
task::Task<Attempt<void>> read_range(env::Env& env, drive::Drive& drive, ByteRange range,
                                     OutputFile& output, Progress& progress);

struct WriteOptions {
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // none: all of the input
  bool durable = false;            // each request; else there is one flush at the end
};
// The bytes that were written, which are durable. An input of known size that does not fit is
// refused before anything is written; one that turns out too short, too long or no multiple of the
// block has been written up to its last whole block, as the Problem says.
task::Task<Attempt<uint64_t>> write_range(env::Env& env, drive::Drive& drive, WriteOptions options,
                                          InputFile& input, Progress& progress);

}  // namespace cairn::apps
