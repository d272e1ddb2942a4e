// SPDX-License-Identifier: Apache-2.0
#include "world/sim/medium.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/disk.h"
#include "world/sim/model/model.h"
#include "world/sim/world.h"

namespace cairn::sim {

using Kind = env::DiskOp::Kind;

Medium::Medium(World& world, Rng rng)
    : world_(world), rng_(rng), model_event_(*this), faults_(world.disk_faults()) {
  const auto& make = world.options().disk.model;
  const uint64_t seed = rng_.next();
  model_ = make ? make(seed) : std::make_unique<SimpleDisk>(seed);
  store_.set_block_size(world.options().disk.block_size);
}

void Medium::create(uint64_t size) {
  CHECK(!exists_, "a disk is made once");
  CHECK(is_aligned(size, block_size()));
  exists_ = true;
  size_ = size;
}

Result<void> Medium::open(const env::DiskOptions& options) {
  const uint32_t block = options.block_size != 0 ? options.block_size : block_size();
  if (!std::has_single_bit(block) || block < 512) return fail(Errc::kInvalid, "disk block size");
  if (!is_aligned(options.size, block)) return fail(Errc::kInvalid, "disk size");
  if (!exists_ && !options.create) return fail(Errc::kNotFound, "disk");
  const bool may_join = !options.lock || (is_shared_ && options.read_only);
  if (openers_ > 0 && !(may_join && block == block_size())) {
    return fail(Errc::kExists, "the disk is in use");
  }
  if (exists_ && (!is_aligned(size_, block) || (options.size != 0 && options.size != size_))) {
    return fail(Errc::kInvalid, "the disk has another size");
  }
  // With other blocks there is nothing to tear along; a change of them counts as a flush.
  if (block != block_size()) store_.flush(store_.mark(), rng_);
  store_.set_block_size(block);
  if (!exists_) create(options.size);
  if (openers_++ == 0) is_shared_ = options.read_only;
  return {};
}

void Medium::stall(Duration duration) {
  stalled_until_ = std::max(stalled_until_, world_.now() + duration);
}

void Medium::heal() {
  failing_reads_.clear();
  failing_writes_.clear();
  fails_flushes_ = false;
  is_full_ = false;
  stalled_until_ = world_.now();
}

void Medium::corrupt(DiskRange range, uint32_t bits) {
  CHECK(range.offset < size_, "there is something to damage");
  const uint64_t length = std::min(range.length, size_ - range.offset);
  for (uint32_t i = 0; i < bits; ++i) {
    const uint64_t offset = range.offset + rng_.below(length);
    std::byte byte[1];
    store_.read(offset, byte);
    byte[0] ^= std::byte{static_cast<uint8_t>(1U << rng_.below(8))};
    store_.overwrite(offset, byte);
  }
}

env::Disk::Extent Medium::next_data(uint64_t offset) const {
  while (offset < size_ && !store_.has_data(offset)) offset += block_size();
  uint64_t end = offset;
  while (end < size_ && store_.has_data(end)) end += block_size();
  return {.offset = offset, .length = end - offset};
}

std::optional<Time> Medium::start(Request& request, Waiter& waiter) {
  if (draw(faults_.stall)) stall(draw_up_to(faults_.stall_max));
  if (request.what.kind == Kind::kFlush) request.mark = store_.mark();
  const uint64_t tag = waiting_.take();
  const std::optional<Time> at = model_->start(world_.now(), request.what, tag);
  request.slower = draw(faults_.slow) ? draw_up_to(faults_.slow_max) : Duration{0};
  if (at) {
    waiting_.give_back(tag);
    return std::max(world_.now(), *at) + request.slower;
  }
  waiting_.wait(tag, waiter);
  waiter.tag = tag;
  advance_model();
  return {};
}

// The model goes on with it; its tag is free when that is done.
void Medium::forget(Waiter& waiter) {
  if (waiter.tag == UINT64_MAX) return;
  waiting_.forget(waiter.tag);
  waiter.tag = UINT64_MAX;
}

void Medium::advance_model() {
  model_event_.cancel();
  completed_.clear();
  model_->advance(world_.now(), completed_);
  for (const uint64_t tag : completed_) {
    Waiter* const waiter = waiting_.give_back(tag);
    if (waiter == nullptr) continue;
    waiter->tag = UINT64_MAX;
    waiter->served();
  }
  if (model_->next_event() != Time::never()) {
    world_.schedule(model_event_, model_->next_event());
  }
}

const EventKind Medium::kModelEvent("disk.model", [](Event& event) {
  static_cast<ModelEvent&>(event).medium.advance_model();
});
const Origin Medium::kOrigin;

Result<void> Medium::execute(const Request& request) {
  if (const Result<void> judged = judge_ ? judge_(request.what) : Result<void>(); !judged) {
    execute_partly(request);
    return judged;
  }
  switch (request.what.kind) {
    case Kind::kRead:
      return read(request);
    case Kind::kWrite:
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      return write(request);
    case Kind::kFlush:
      return flush(request);
    case Kind::kResize:
      resize(request.what.length);
      return {};
  }
  return {};
}

bool Medium::touches(const std::vector<DiskRange>& ranges, const env::DiskOp::Request& request) {
  return std::ranges::any_of(ranges, [&](const DiskRange& range) {
    return request.offset < range.offset + std::min(range.length, UINT64_MAX - range.offset) &&
           range.offset < request.offset + request.length;
  });
}

Result<void> Medium::read(const Request& request) {
  const uint64_t first = request.what.offset / block_size();
  const uint64_t last = (request.what.offset + request.what.length - 1) / block_size();
  const auto latent = latent_.lower_bound(first);
  if (touches(failing_reads_, request.what) || (latent != latent_.end() && *latent <= last) ||
      draw(faults_.read_error)) {
    return fail(Errc::kIo, "disk read");
  }
  uint64_t offset = request.what.offset;
  for (const MutableBytes piece : request.pieces) {
    store_.read(offset, piece);
    offset += piece.size();
  }
  return {};
}

template <class F>
void Medium::store_blocks(const Request& request, int64_t shift, F wanted) {
  const uint32_t block = block_size();
  const uint64_t begin = request.what.offset;
  size_t piece = 0;
  size_t inside = 0;
  for (uint64_t index = 0; index * block < request.what.length; ++index) {
    std::optional<Bytes> bytes;
    if (request.what.kind == Kind::kWrite) {
      while (inside == request.pieces[piece].size()) {
        ++piece;
        inside = 0;
      }
      bytes = request.pieces[piece].subspan(inside, block);
      inside += block;
    }
    if (!wanted(index)) continue;
    const uint64_t offset = begin + index * block + static_cast<uint64_t>(shift);
    store_.write_block(offset, bytes, request.what.durable, rng_);
    if (!latent_.empty()) latent_.erase(offset / block);
  }
}

Result<void> Medium::write(const Request& request) {
  const uint64_t count = request.what.length / block_size();
  const bool takes_space = request.what.kind != Kind::kDiscard;
  if (is_full_ && takes_space) {
    const uint64_t fits = rng_.below(count);
    store_blocks(request, 0, [=](uint64_t index) { return index < fits; });
    return fail(Errc::kNoSpace, "disk write");
  }
  if (touches(failing_writes_, request.what) || draw(faults_.write_error)) {
    execute_partly(request);
    return fail(Errc::kIo, "disk write");
  }
  if (draw(faults_.lost)) return {};
  int64_t shift = 0;
  if (draw(faults_.misdirected)) {
    const uint64_t places = (size_ - request.what.length) / block_size() + 1;
    const uint64_t place = rng_.below(places) * block_size();
    shift = static_cast<int64_t>(place) - static_cast<int64_t>(request.what.offset);
  }
  store_blocks(request, shift, [](uint64_t) { return true; });
  if (draw(faults_.latent)) {
    latent_.insert(request.what.offset / block_size() + rng_.below(count));
  }
  return {};
}

void Medium::execute_partly(const Request& request) {
  switch (request.what.kind) {
    case Kind::kRead:
    case Kind::kFlush:
      return;
    case Kind::kResize:
      if (rng_.bernoulli(0.5)) resize(request.what.length);
      return;
    case Kind::kWrite:
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      break;
  }
  // All or nothing are as likely as anything in between.
  const double share = std::clamp(rng_.uniform() * 2 - 0.5, 0.0, 1.0);
  // Of a durable write that did not succeed, what can be read may be in the cache alone.
  Request left = request;
  left.what.durable = request.what.durable && rng_.bernoulli(0.5);
  store_blocks(left, 0, [&](uint64_t) { return rng_.bernoulli(share); });
}

Result<void> Medium::flush(const Request& request) {
  if (fails_flushes_ || draw(faults_.flush_error)) {
    store_.fail_flush(request.mark, rng_);
    return fail(Errc::kIo, "disk flush");
  }
  store_.flush(request.mark, rng_);
  return {};
}

void Medium::resize(uint64_t size) {
  store_.truncate(size, size_);
  size_ = size;
}

void Medium::lose_power() {
  const double keep = std::clamp(rng_.uniform() * 2 - 0.5, 0.0, 1.0);
  store_.lose_power(keep, rng_);
}

}  // namespace cairn::sim
