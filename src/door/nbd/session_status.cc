// SPDX-License-Identifier: Apache-2.0
// The status of blocks: where a drive has nothing.
#include <algorithm>
#include <utility>
#include <vector>

#include "door/nbd/reply.h"
#include "door/nbd/session.h"
#include "drive/scratch.h"

namespace cairn::door::nbd {

namespace {

// What one request for the status of a range is told at most; clients ask again for the rest.
constexpr size_t kExtentsMax = 512;
// How often a drive is asked for that, since one may answer in small steps.
constexpr int kQuestionsMax = 1024;
// Of memory, which knows no holes, so many bytes are looked at for zeroes, in steps of this or of a
// block if that is larger.
constexpr uint64_t kLookMax = 4 << 20;
constexpr uint64_t kLookStep = 4096;
// At a time, where it is looked at in a copy.
constexpr uint64_t kCopyMax = 512 << 10;

// Extents as they are found, those that are alike as one.
class Told {
 public:
  Told(std::vector<StatusExtent>& into, size_t max) : into_(into), max_(max) {}
  // False: there is no room for another.
  bool add(uint64_t bytes, uint32_t flags) {
    if (!into_.empty() && into_.back().flags == flags) {
      into_.back().length = into_.back().length + static_cast<uint32_t>(bytes);
      return true;
    }
    if (into_.size() == max_) return false;
    into_.push_back({.length = static_cast<uint32_t>(bytes), .flags = flags});
    return true;
  }

 private:
  std::vector<StatusExtent>& into_;
  size_t max_;
};

// Blocks as they are now, if that needs no waiting; else none. They lie in `room`.
Bytes copy_now(env::Env& env, drive::Drive& drive, const BlockSpan& span, drive::Scratch& room) {
  Result<drive::Scratch> made = drive::Scratch::make(env, span.bytes);
  if (!made) return {};
  const MutableBytes piece = made->bytes();
  const auto done = drive.try_now({.lba = span.first, .blocks = span.blocks}, {&piece, 1});
  if (!done || !*done) return {};
  room = std::move(*made);
  return room.bytes();
}

// Bytes of memory that begin at `offset` of the drive.
bool add_memory(Told& told, Bytes data, uint64_t offset, uint64_t step) {
  while (!data.empty()) {
    const size_t part = std::min<uint64_t>(data.size(), step - offset % step);
    if (!told.add(part, is_zero(data.first(part)) ? kStateZero : 0)) return false;
    offset += part;
    data = data.subspan(part);
  }
  return true;
}

}  // namespace

task::Task<void> Session::serve_status(NbdRequest request) {
  std::vector<StatusExtent> extents;
  co_await find_extents(request, extents);
  const std::span<const StatusExtent> told(extents);
  const auto size = static_cast<uint32_t>(sizeof(Be32) + told.size_bytes());
  struct {
    ChunkHeader chunk;
    Be32 context;
  } const reply{chunk(request.cookie, ChunkType::kBlockStatus, size, true), kAllocationId};
  const Result<void> sent = co_await outbox_.send({bytes_of(reply), std::as_bytes(told)});
  if (!sent) reading_.request();
  release_slot();
}

// As the drive knows it, without reading. What it does not know is data.
task::Task<void> Session::find_extents(NbdRequest request, std::vector<StatusExtent>& extents) {
  const uint64_t block = export_.block_size();
  const uint64_t end = request.offset + request.length;
  const uint64_t look_end = request.offset + std::min<uint64_t>(request.length, kLookMax);
  Told told(extents, request.has(kFlagReqOne) ? 1 : kExtentsMax);
  uint64_t offset = request.offset;
  for (int asked = 0; offset < end && asked < kQuestionsMax; ++asked) {
    const Lba lba(offset / block);
    const drive::Extent extent =
        co_await export_.extent_at(lba, align_up(end, block) / block - lba.value());
    const uint64_t blocks = std::max<uint64_t>(extent.blocks, 1);
    const uint64_t length = std::min((lba.value() + blocks) * block, end) - offset;
    if (extent.is_hole) {
      if (!told.add(length, kStateHole | kStateZero)) co_return;
      offset += length;
      continue;
    }
    uint64_t seen = offset < look_end ? std::min(length, look_end - offset) : 0;
    BlockSpan span = export_.span_of(offset, seen);
    Bytes memory = seen == 0 ? Bytes{} : export_.drive().lend(span.first, span.blocks);
    drive::Scratch room;
    if (memory.empty() && seen > 0) {
      seen = std::min(seen, kCopyMax);
      span = export_.span_of(offset, seen);
      memory = copy_now(env_, export_.drive(), span, room);
    }
    if (memory.empty()) {
      if (!told.add(length, 0)) co_return;
      offset += length;
      continue;
    }
    if (!add_memory(told, memory.subspan(span.head, seen), offset, std::max(kLookStep, block))) {
      co_return;
    }
    offset += seen;
    if (offset == look_end) co_return;
  }
}

}  // namespace cairn::door::nbd
