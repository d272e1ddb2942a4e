// SPDX-License-Identifier: Apache-2.0
#include "drive/memory_drive.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/copy.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kClearedAtOnce = 8_MiB;  // of a medium that several cores use

}  // namespace

Result<std::unique_ptr<MemoryMedium>> MemoryMedium::make(env::Env& env, uint64_t size,
                                                         uint32_t block_size,
                                                         env::MemoryPages pages) {
  if (size == 0 || !is_aligned(size, block_size)) {
    return fail(Errc::kInvalid, "drive size (a multiple of the block size)");
  }
  std::unique_ptr<MemoryMedium> medium(new MemoryMedium(env, block_size, pages));
  if (Result<void> sized = medium->resize(size); !sized) return fail(sized.error());
  return medium;
}

uint64_t MemoryMedium::capacity() const {
  uint64_t bytes = 0;
  for (const auto& region : regions_) bytes += region->bytes().size();
  return bytes;
}

Result<void> MemoryMedium::resize(uint64_t size) {
  if (size == size_) return {};
  const uint64_t kept = std::min(size, size_);
  if (const uint64_t had = capacity(); size > had) {
    Result<std::unique_ptr<env::Memory>> more = env_.map_memory(size - had, pages_);
    if (!more) return fail(more.error());
    regions_.push_back(std::move(*more));
  }
  // Shrinking gives memory back. A core that had not heard of it may have written there since:
  // growing clears what is to be seen again.
  discard(kept, std::max(size, size_));
  size_ = size;
  return {};
}

void MemoryMedium::discard(uint64_t begin, uint64_t end) {
  for (const auto& region : regions_) {
    const uint64_t length = region->bytes().size();
    const uint64_t first = std::min(begin, length);
    const uint64_t last = std::min(end, length);
    if (first < last) region->discard(first, last - first);
    begin -= first;
    end -= last;
  }
}

MemoryDrive::MemoryDrive(env::Env& env, MemoryMedium& medium)
    : env_(env),
      medium_(medium),
      latches_(medium.latches()),
      ranges_(medium.ranges().on(env.core())) {
  geometry_ = {.blocks = medium.size() / medium.block_size(),
               .block_size = medium.block_size(),
               .transfer_blocks = static_cast<uint32_t>(1_MiB / medium.block_size()),
               .volatile_cache = false};
  for (const auto& region : medium.regions()) regions_.push_back(region.get());
}

task::Task<Result<void>> MemoryDrive::resize(uint64_t blocks) {
  if (blocks == 0 || blocks > UINT64_MAX / geometry_.block_size) {
    co_return fail(Errc::kInvalid, "drive size");
  }
  Result<void> resized = medium_.resize(blocks * geometry_.block_size);
  if (!resized) co_return resized;
  const auto& regions = medium_.regions();
  for (size_t i = regions_.size(); i < regions.size(); ++i) regions_.push_back(regions[i].get());
  geometry_.blocks = blocks;
  co_return resized;
}

MutableBytes MemoryDrive::at(uint64_t offset) const {
  for (const env::Memory* region : regions_) {
    const MutableBytes bytes = region->bytes();
    if (offset < bytes.size()) return bytes.subspan(offset);
    offset -= bytes.size();
  }
  return {};
}

template <class F>
void MemoryDrive::visit(uint64_t offset, std::span<const MutableBytes> pieces,
                        BlockLatches::Mode mode, F&& visit) const {
  if (latches_ != nullptr) return visit_latched(offset, pieces, mode, visit);
  for (MutableBytes piece : pieces) {
    while (!piece.empty()) {
      MutableBytes stored = at(offset);
      stored = stored.first(std::min(stored.size(), piece.size()));
      CHECK(!stored.empty(), "requests were checked to be within the drive");
      visit(stored, piece.first(stored.size()));
      offset += stored.size();
      piece = piece.subspan(stored.size());
    }
  }
}

// Pieces may be cut inside a block: its latch is held from the first of them to the last.
template <class F>
void MemoryDrive::visit_latched(uint64_t offset, std::span<const MutableBytes> pieces,
                                BlockLatches::Mode mode, F&& visit) const {
  const uint64_t size = geometry_.block_size;
  for (MutableBytes piece : pieces) {
    while (!piece.empty()) {
      const uint64_t in_block = offset % size;
      if (in_block == 0) latches_->enter(offset / size, mode);
      MutableBytes stored = at(offset);
      stored = stored.first(std::min({stored.size(), piece.size(), size - in_block}));
      CHECK(!stored.empty(), "requests were checked to be within the drive");
      visit(stored, piece.first(stored.size()));
      piece = piece.subspan(stored.size());
      if (in_block + stored.size() == size) latches_->leave(offset / size, mode);
      offset += stored.size();
    }
  }
}

Result<void> MemoryDrive::compare(uint64_t offset, std::span<const MutableBytes> with) const {
  bool same = true;
  visit(offset, with, BlockLatches::Mode::kShared,
        [&same](MutableBytes stored, MutableBytes piece) {
          same = same && std::memcmp(stored.data(), piece.data(), piece.size()) == 0;
        });
  if (!same) return fail(Errc::kMismatch, "compare");
  return {};
}

void MemoryDrive::clear(uint64_t offset, uint64_t length) {
  for (env::Memory* region : regions_) {
    const uint64_t size = region->bytes().size();
    if (offset >= size) {
      offset -= size;
      continue;
    }
    const uint64_t here = std::min(length, size - offset);
    if (here > 0) region->discard(offset, here);
    offset = 0;
    length -= here;
  }
}

// A part at a time, so that others do not wait for long.
void MemoryDrive::clear_latched(uint64_t offset, uint64_t length) {
  if (length == geometry_.block_size) {
    const uint64_t block = offset / geometry_.block_size;
    latches_->enter(block, BlockLatches::Mode::kAlone);
    clear(offset, length);
    return latches_->leave(block, BlockLatches::Mode::kAlone);
  }
  while (length > 0) {
    const uint64_t here = std::min(length, align_up(offset + 1, kClearedAtOnce) - offset);
    latches_->enter_all();
    clear(offset, here);
    latches_->leave_all();
    offset += here;
    length -= here;
  }
}

void MemoryDrive::start(DriveOp& op) {
  if (op.request.kind == Request::Kind::kCompareAndWrite) return gate_.spawn(run_alone(op));
  if (ranges_.has_exclusive() && op.request.kind != Request::Kind::kFlush) {
    return gate_.spawn(run_in_turn(op));
  }
  op.complete(run(op));
}

task::Task<void> MemoryDrive::run_alone(DriveOp& op) {
  SharedRanges::Alone alone(medium_.ranges(), op.request.lba.value(), op.request.blocks);
  co_await alone.enter(env_);
  const Result<void> done = run(op);
  co_await alone.leave(env_);
  op.complete(done);
}

task::Task<void> MemoryDrive::run_in_turn(DriveOp& op) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, op.request.lba.value(), op.request.blocks,
                    op.token());
  const Result<void> held = co_await hold;
  op.complete(held ? run(op) : held);
}

bool MemoryDrive::run_now(const Request& request, std::span<const MutableBytes> data,
                          Result<void>& done) {
  if (ranges_.has_exclusive()) return false;
  done = run(request, data, {});
  return true;
}

// Whoever borrows holds no latch, so another core could write to a block while it is sent.
Bytes MemoryDrive::lend_now(Lba lba, uint64_t blocks) const {
  if (ranges_.has_exclusive() || latches_ != nullptr) return {};
  const Bytes stored = at(lba.value() * geometry_.block_size);
  const uint64_t length = blocks * geometry_.block_size;
  if (stored.size() < length) return {};
  fetch_soon(stored.first(length));
  return stored.first(length);
}

Result<void> MemoryDrive::run(const Request& request, std::span<const MutableBytes> data,
                              std::span<const MutableBytes> second) {
  using Kind = Request::Kind;
  const uint64_t offset = request.lba.value() * geometry_.block_size;
  switch (request.kind) {
    case Kind::kRead:
      visit(offset, data, BlockLatches::Mode::kShared, [](MutableBytes stored, MutableBytes piece) {
        std::memcpy(piece.data(), stored.data(), piece.size());
      });
      break;
    case Kind::kCompareAndWrite:
      if (Result<void> same = compare(offset, data); !same) return same;
      [[fallthrough]];
    case Kind::kWrite:
      visit(offset, request.kind == Kind::kWrite ? data : second, BlockLatches::Mode::kAlone,
            [](MutableBytes stored, MutableBytes piece) { copy_past_cache(stored, piece); });
      break;
    case Kind::kCompare:
      return compare(offset, data);
    case Kind::kFlush:
      break;
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      if (latches_ != nullptr) {
        clear_latched(offset, request.blocks * geometry_.block_size);
      } else {
        clear(offset, request.blocks * geometry_.block_size);
      }
      break;
  }
  return {};
}

// Those who wait for their turn take the token themselves.
void MemoryDrive::cancel(DriveOp&) {}

}  // namespace cairn::drive
