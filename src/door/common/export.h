// SPDX-License-Identifier: Apache-2.0
// Export: a drive as clients of block doors see it, a run of bytes. Requests of any offset and
// length become requests of whole blocks; a block of which only a part is written keeps the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "drive/drive.h"
#include "drive/shared_ranges.h"
#include "drive/source.h"
#include "env/env.h"
#include "stream/buffer_queue.h"
#include "task/task.h"

namespace cairn::door {

struct ExportOptions {
  std::string name;  // at most 4096 bytes
  std::string description;
  bool read_only = false;
  bool has_other_writers = false;   // the drive is served at another door too
  drive::Source* source = nullptr;  // outlives the server
};

// The blocks that hold a range of bytes.
struct BlockSpan {
  Lba first{};
  uint64_t blocks = 0;
  size_t bytes = 0;   // of the blocks
  size_t head = 0;    // bytes of the first block before the range
  bool whole = true;  // the range is these blocks exactly
};

struct ZeroOptions {
  bool durable = false;
  bool keep_space = false;
  bool fast = false;  // kUnsupported rather than writing zeroes one by one
};

// One per core that serves it. A change of whole blocks locks them on its core; a change of a part
// of a block locks it exclusively on all cores, between reading and writing it. Writers at other
// doors lock nothing here: against these, a part is written only if the block has not changed.
class Export {
 public:
  Export(env::Env& env, const ExportOptions& options, drive::SharedRanges& ranges,
         std::unique_ptr<drive::Drive> drive)
      : env_(env), options_(options), ranges_(ranges), drive_(std::move(drive)) {}

  const ExportOptions& options() const { return options_; }
  drive::Drive& drive() { return *drive_; }
  uint64_t size() const { return drive_->geometry().bytes(); }
  uint32_t block_size() const { return drive_->geometry().block_size; }
  bool has(uint64_t offset, uint64_t length) const {
    return offset <= size() && length <= size() - offset;
  }

  BlockSpan span_of(uint64_t offset, uint64_t length) const;
  // The most of a range that one piece of a transfer covers, from its front.
  size_t piece_of(uint64_t offset, uint64_t length) const;
  // Room that write() needs for a piece.
  size_t room_of(const BlockSpan& span) const {
    return span.whole ? span.bytes : span.bytes + block_size();
  }

  // Reads the blocks of a span; `into` has as many bytes.
  task::Task<Result<void>> read(BlockSpan span, MutableBytes into);
  // Writes the `length` bytes that stand at span.head of `room`, whose rest is used as scratch.
  task::Task<Result<void>> write(BlockSpan span, MutableBytes room, size_t length, bool durable);
  task::Task<Result<void>> write_zeroes(uint64_t offset, uint64_t length, ZeroOptions options,
                                        stream::BufferQueue& buffers);
  // Whole blocks of the range; a drive that cannot is no error, for a trim is a hint.
  task::Task<Result<void>> trim(uint64_t offset, uint64_t length, bool durable);
  task::Task<Result<void>> flush();
  // Those being changed on this core. Who writes whole blocks without asking write() holds them
  // there, shared, unless nobody is alone with any.
  drive::Ranges& ranges() { return ranges_.on(env_.core()); }
  bool has_exclusive() const { return ranges_.on(env_.core()).has_exclusive(); }
  // As Drive::extent_at.
  task::Task<drive::Extent> extent_at(Lba lba, uint64_t max) {
    return options_.source->extent_at(env_, *drive_, lba, max);
  }

 private:
  task::Task<Result<void>> transfer(drive::Request request, MutableBytes data);
  task::Task<Result<void>> write_part(BlockSpan span, MutableBytes room, size_t length,
                                      bool durable);
  task::Task<Result<void>> write_among_others(BlockSpan span, MutableBytes room, size_t length,
                                              bool durable);
  task::Task<Result<void>> write_edge(BlockSpan span, MutableBytes room, size_t length,
                                      uint64_t index, bool durable);
  task::Task<Result<void>> fill_edges(BlockSpan span, MutableBytes room, size_t length);
  task::Task<Result<void>> zero_part(uint64_t offset, size_t length, bool durable,
                                     stream::BufferQueue& buffers);
  task::Task<Result<void>> zero_blocks(Lba first, uint64_t blocks, ZeroOptions options,
                                       stream::BufferQueue& buffers);
  task::Task<Result<void>> write_zero_blocks(Lba first, uint64_t blocks, bool durable,
                                             stream::BufferQueue& buffers);

  env::Env& env_;
  const ExportOptions& options_;
  drive::SharedRanges& ranges_;
  std::unique_ptr<drive::Drive> drive_;
};

// Bytes of one piece of a transfer at most; a larger request is served piece by piece.
inline constexpr size_t kPieceMax = 256_KiB;
// For how long a request waits for a buffer. Requests before it keep them for as long as their
// drive takes, and a client whose requests fail gives the drive up: so, for long.
inline constexpr Duration kBufferTimeout = 600_s;
// The largest block of a drive: scratch beside a piece.
inline constexpr size_t kBlockMax = 64_KiB;

}  // namespace cairn::door
