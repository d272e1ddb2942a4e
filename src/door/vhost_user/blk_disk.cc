// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/blk_disk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "door/vhost_user/options.h"
#include "drive/scratch.h"

namespace cairn::door::vhost_user {

namespace {

using Kind = drive::Request::Kind;

// What a guest is told of the largest requests.
constexpr uint32_t kSegmentBytesMax = 1 << 20;
constexpr uint32_t kSegmentsTold = 126;  // with header and status no more than the smallest queue
constexpr uint32_t kRangesMax = 16;
constexpr uint32_t kDiscardSectorsMax = (1u << 30) / kSector;
constexpr uint32_t kZeroSectorsMax = (64u << 20) / kSector;

BlkType type_of(const BlkRequest& request) { return static_cast<BlkType>(request.type); }
bool is_transfer(const BlkRequest& request) {
  return type_of(request) == BlkType::kIn || type_of(request) == BlkType::kOut;
}

// Calls visit(bytes) for parts of `pieces` from `skip` on, `size` bytes in all.
template <class Visit>
void for_parts(std::span<const MutableBytes> pieces, size_t skip, size_t size, Visit&& visit) {
  for (const MutableBytes piece : pieces) {
    if (size == 0) return;
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    const MutableBytes part = piece.subspan(skip, std::min(size, piece.size() - skip));
    skip = 0;
    size -= part.size();
    visit(part);
  }
}

}  // namespace

BlkDisk::BlkDisk(env::Env& env, Export& exported)
    : env_(env), export_(exported), opening_(env.rng().next() | 1), buffers_(env, env.buffers()) {}

uint64_t BlkDisk::features() const {
  constexpr uint64_t kAlways = kBlkSizeMax | kBlkSegMax | kBlkBlockSize | kBlkTopology | kBlkFlush |
                               kBlkConfigWriteback | kBlkMultiQueue;
  if (export_.options().read_only) return kAlways | kBlkReadOnly;
  return kAlways | kBlkDiscard | kBlkWriteZeroes;
}

BlkConfig BlkDisk::config(bool writeback) const {
  const drive::Geometry& shape = export_.drive().geometry();
  const uint32_t block_sectors = shape.block_size / kSector;
  const uint64_t best = uint64_t{block_sectors} * std::max(shape.optimal_blocks, 1u);
  const uint64_t discard = uint64_t{block_sectors} * std::max(shape.discard_blocks, 1u);
  BlkConfig config{};
  config.capacity = shape.bytes() / kSector;
  config.size_max = kSegmentBytesMax;
  config.seg_max = kSegmentsTold;
  config.block_size = kSector;
  config.physical_block_exponent = static_cast<uint8_t>(std::countr_zero(block_sectors));
  config.io_size_min = static_cast<uint16_t>(std::min<uint32_t>(block_sectors, UINT16_MAX));
  config.io_size_best = static_cast<uint32_t>(std::min<uint64_t>(best, UINT32_MAX));
  config.writeback = writeback ? 1 : 0;
  config.queues = kQueuesMax;
  config.discard_sectors_max = kDiscardSectorsMax;
  config.discard_segments_max = kRangesMax;
  config.discard_sector_alignment = static_cast<uint32_t>(std::min<uint64_t>(discard, 1u << 30));
  config.write_zeroes_sectors_max = kZeroSectorsMax;
  config.write_zeroes_segments_max = kRangesMax;
  config.write_zeroes_may_unmap = 1;
  return config;
}

bool BlkDisk::is_whole(const BlkRequest& request) const {
  const uint64_t block = export_.block_size();
  return is_aligned(request.sector * kSector, block) && is_aligned(request.data_size, block);
}

// What a transfer that cannot be is answered with.
std::optional<BlkStatus> BlkDisk::refuse(const BlkRequest& request) const {
  const uint64_t sectors = export_.size() / kSector;
  const bool writes = type_of(request) == BlkType::kOut;
  if (writes && export_.options().read_only) return BlkStatus::kError;
  if (!is_aligned(request.data_size, kSector)) return BlkStatus::kError;
  for (const Segment& each : request.places) {
    if (each.is_writable == writes) return BlkStatus::kError;
  }
  const uint64_t count = request.data_size / kSector;
  if (request.sector > sectors || count > sectors - request.sector) return BlkStatus::kError;
  return std::nullopt;
}

std::optional<BlkDisk::Outcome> BlkDisk::try_now(const BlkRequest& request, bool durable) {
  if (!is_transfer(request) || request.data_size == 0) return std::nullopt;
  if (const auto status = refuse(request)) {
    ++figures_.requests;
    ++figures_.errors;
    return Outcome{.status = *status};
  }
  drive::Drive& drive = export_.drive();
  const uint64_t block = export_.block_size();
  const uint64_t blocks = request.data_size / block;
  if (!is_whole(request) || blocks > drive.geometry().transfer_blocks) return std::nullopt;
  if (type_of(request) == BlkType::kOut && export_.has_exclusive()) return std::nullopt;
  const drive::Request wanted{.kind = type_of(request) == BlkType::kIn ? Kind::kRead : Kind::kWrite,
                              .durable = durable && type_of(request) == BlkType::kOut,
                              .unstable_memory = true,  // the guest's
                              .lba = Lba(request.sector * kSector / block),
                              .blocks = blocks};
  const std::optional<Result<void>> done = drive.try_now(wanted, request.data);
  if (!done) return std::nullopt;
  return outcome_of(request, *done);
}

BlkDisk::Outcome BlkDisk::outcome_of(const BlkRequest& request, const Result<void>& done) {
  ++figures_.requests;
  if (done) {
    return {.status = BlkStatus::kOk,
            .written = type_of(request) == BlkType::kIn ? request.data_size : 0};
  }
  if (done.error() == Errc::kCancelled) {
    return {.status = BlkStatus::kError, .written = 0, .is_done = false};
  }
  ++figures_.errors;
  const bool cannot = done.error() == Errc::kUnsupported;
  return {.status = cannot ? BlkStatus::kUnsupported : BlkStatus::kError};
}

task::Task<BlkDisk::Outcome> BlkDisk::run(const BlkRequest& request, bool durable,
                                          task::CancelToken token) {
  Result<void> done;
  switch (type_of(request)) {
    case BlkType::kIn:
    case BlkType::kOut:
      if (const auto status = refuse(request)) {
        ++figures_.requests;
        ++figures_.errors;
        co_return Outcome{.status = *status};
      }
      done = co_await transfer(request, durable, token);
      co_return outcome_of(request, done);
    case BlkType::kFlush:
      done = co_await export_.flush();
      co_return outcome_of(request, done);
    case BlkType::kGetId:
      ++figures_.requests;
      co_return get_id(request);
    case BlkType::kDiscard:
    case BlkType::kWriteZeroes: {
      const Outcome outcome = co_await run_ranges(request, durable);
      co_return outcome;
    }
  }
  ++figures_.requests;
  ++figures_.errors;
  co_return Outcome{.status = BlkStatus::kUnsupported};
}

task::Task<Result<void>> BlkDisk::submit(drive::Request request, std::span<const MutableBytes> data,
                                         task::CancelToken token) {
  const std::optional<Result<void>> now = export_.drive().try_now(request, data);
  if (now) co_return *now;
  const Result<void> done = co_await export_.drive().submit(request, data, {}, token);
  co_return done;
}

// Whole blocks; of a request that is larger than the drive takes, one part after the other.
task::Task<Result<void>> BlkDisk::transfer_whole(const BlkRequest& request, bool durable,
                                                 task::CancelToken token) {
  const uint64_t block = export_.block_size();
  const bool writes = type_of(request) == BlkType::kOut;
  const uint64_t first = request.sector * kSector / block;
  const uint64_t blocks = request.data_size / block;
  const uint64_t max = export_.drive().geometry().transfer_blocks;
  drive::Ranges::Hold hold(export_.ranges(), drive::Ranges::Mode::kShared, first, blocks, token);
  if (writes) {
    const Result<void> held = co_await hold;
    if (!held) co_return held;
  }
  drive::Request part{.kind = writes ? Kind::kWrite : Kind::kRead,
                      .durable = writes && durable,
                      .unstable_memory = true,  // the guest's
                      .lba = Lba(first),
                      .blocks = blocks};
  if (blocks <= max) {
    const Result<void> done = co_await submit(part, request.data, token);
    co_return done;
  }
  std::vector<MutableBytes> pieces;
  for (uint64_t at = 0; at < blocks; at += part.blocks) {
    part.lba = Lba(first + at);
    part.blocks = std::min(blocks - at, max);
    pieces.clear();
    for_parts(request.data, at * block, part.blocks * block,
              [&](MutableBytes piece) { pieces.push_back(piece); });
    const Result<void> done = co_await submit(part, pieces, token);
    if (!done) co_return done;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> BlkDisk::transfer(const BlkRequest& request, bool durable,
                                           task::CancelToken token) {
  if (request.data_size == 0) co_return Result<void>{};
  if (is_whole(request)) {
    const Result<void> done = co_await transfer_whole(request, durable, token);
    co_return done;
  }
  for (uint64_t at = 0; at < request.data_size;) {
    const size_t size = export_.piece_of(request.sector * kSector + at, request.data_size - at);
    Result<void> done;
    if (type_of(request) == BlkType::kIn) {
      done = co_await read_part(request, at, size);
    } else {
      done = co_await write_part(request, at, size, durable);
    }
    if (!done) co_return done;
    at += size;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> BlkDisk::read_part(const BlkRequest& request, uint64_t at, size_t size) {
  const BlockSpan span = export_.span_of(request.sector * kSector + at, size);
  Result<drive::Scratch> room = drive::Scratch::make(env_, span.bytes);
  if (!room) co_return fail(room.error());
  const Result<void> done = co_await export_.read(span, room->bytes());
  if (!done) co_return done;
  const std::byte* from = room->data() + span.head;
  for_parts(request.data, at, size, [&](MutableBytes part) {
    std::memcpy(part.data(), from, part.size());
    from += part.size();
  });
  figures_.copied_bytes += size;
  co_return done;
}

task::Task<Result<void>> BlkDisk::write_part(const BlkRequest& request, uint64_t at, size_t size,
                                             bool durable) {
  const BlockSpan span = export_.span_of(request.sector * kSector + at, size);
  Result<drive::Scratch> room = drive::Scratch::make(env_, export_.room_of(span));
  if (!room) co_return fail(room.error());
  std::byte* to = room->data() + span.head;
  for_parts(request.data, at, size, [&](MutableBytes part) {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  });
  figures_.copied_bytes += size;
  const Result<void> done = co_await export_.write(span, room->bytes(), size, durable);
  co_return done;
}

// Discards and write-zeroes: the ranges are read once, then done one after the other.
task::Task<BlkDisk::Outcome> BlkDisk::run_ranges(const BlkRequest& request, bool durable) {
  const bool discards = type_of(request) == BlkType::kDiscard;
  std::array<BlkRange, kRangesMax> ranges{};
  const size_t count = request.data_size / sizeof(BlkRange);
  Outcome wrong{.status = BlkStatus::kError};
  const bool is_list = count > 0 && count <= kRangesMax &&
                       is_aligned(request.data_size, sizeof(BlkRange)) &&
                       std::ranges::none_of(request.places, &Segment::is_writable);
  if (!is_list || export_.options().read_only) {
    ++figures_.requests;
    ++figures_.errors;
    co_return wrong;
  }
  auto* to = reinterpret_cast<std::byte*>(ranges.data());
  for (const MutableBytes piece : request.data) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  const uint64_t sectors = export_.size() / kSector;
  for (size_t i = 0; i < count; ++i) {
    const BlkRange& range = ranges[i];
    const uint32_t known = discards ? 0 : kRangeUnmap;
    if ((range.flags & ~known) != 0) wrong.status = BlkStatus::kUnsupported;
    const uint32_t max = discards ? kDiscardSectorsMax : kZeroSectorsMax;
    const bool fits =
        range.sectors <= max && range.sector <= sectors && range.sectors <= sectors - range.sector;
    if (fits && (range.flags & ~known) == 0) continue;
    ++figures_.requests;
    ++figures_.errors;
    co_return wrong;
  }
  Result<void> done;
  for (size_t i = 0; i < count && done; ++i) {
    done = co_await run_range(ranges[i], discards, durable);
  }
  co_return outcome_of(request, done);
}

task::Task<Result<void>> BlkDisk::run_range(BlkRange range, bool discards, bool durable) {
  const uint64_t offset = range.sector * kSector;
  const uint64_t length = range.sectors * kSector;
  Result<void> done;
  if (discards) {
    done = co_await export_.trim(offset, length, durable);
  } else {
    const bool keep_space = (range.flags & kRangeUnmap) == 0;
    done = co_await export_.write_zeroes(
        offset, length, {.durable = durable, .keep_space = keep_space, .fast = false}, buffers_);
  }
  co_return done;
}

// The name of the drive, as far as it fits.
BlkDisk::Outcome BlkDisk::get_id(const BlkRequest& request) const {
  if (request.data_size < kBlkIdSize ||
      !std::ranges::all_of(request.places, &Segment::is_writable)) {
    return {.status = BlkStatus::kError};
  }
  std::array<std::byte, kBlkIdSize> id{};
  const std::string& name = export_.options().name;
  std::ranges::copy(as_bytes(std::string_view(name).substr(0, id.size())), id.begin());
  const std::byte* from = id.data();
  for_parts(request.data, 0, id.size(), [&](MutableBytes part) {
    std::memcpy(part.data(), from, part.size());
    from += part.size();
  });
  return {.status = BlkStatus::kOk, .written = id.size()};
}

}  // namespace cairn::door::vhost_user
