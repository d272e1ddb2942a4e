// SPDX-License-Identifier: Apache-2.0
// --offset and --length: which bytes of a namespace a command is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/common/command.h"
#include "base/problem.h"
#include "drive/drive.h"

namespace cairn::apps {

struct RangeOptions {
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // none: up to the end
};
void add_range(CLI::App& app, RangeOptions& options);

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// A Problem, with what would do, when offset or length is no multiple of the block, the range is
// not within the drive, or it is empty.
Attempt<ByteRange> check_range(const RangeOptions& options, const drive::Geometry& geometry);

// That `bytes` is a multiple of the block; `what`, "--length 1000", begins the sentence.
Attempt<void> check_blocks(const std::string& what, uint64_t bytes, uint32_t block_size);

}  // namespace cairn::apps
