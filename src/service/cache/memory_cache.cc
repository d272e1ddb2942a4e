// SPDX-License-Identifier: Apache-2.0
#include "service/cache/memory_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drive/pieces.h"
#include "drive/ranges.h"
#include "drive/stable_memory.h"
#include "env/memory.h"
#include "service/cache/lru.h"
#include "service/common/service_drive.h"

namespace cairn::drive {

namespace {

using Kind = Request::Kind;
using Memory = std::span<const MutableBytes>;

// Walks over the bytes of a scatter list, block by block.
class Walk {
 public:
  explicit Walk(Memory pieces) : pieces_(pieces) {}
  // The next `size` bytes, piece by piece.
  template <class F>
  void next(size_t size, F visit) {
    for (size_t done = 0; done < size;) {
      while (at_ == pieces_.front().size()) {
        pieces_ = pieces_.subspan(1);
        at_ = 0;
      }
      const size_t here = std::min(size - done, pieces_.front().size() - at_);
      visit(pieces_.front().subspan(at_, here), done);
      at_ += here;
      done += here;
    }
  }

 private:
  Memory pieces_;
  size_t at_ = 0;
};

class MemoryCache final : public ServiceDrive {
 public:
  MemoryCache(env::Env& env, std::vector<std::unique_ptr<Drive>> drives,
              std::unique_ptr<env::Memory> memory, uint32_t slots)
      : ServiceDrive(std::move(drives)), env_(env), memory_(std::move(memory)), lru_(slots) {
    geometry_ = below().geometry();
  }

  Extent extent_at(Lba lba, uint64_t max) const override { return below().extent_at(lba, max); }
  task::Task<Result<void>> resize(uint64_t blocks) override;
  std::vector<Fact> facts() const override {
    return {{"hits", hits_},
            {"misses", misses_},
            {"blocks", lru_.size()},
            {"blocks_used", lru_.used()}};
  }

 private:
  task::Task<Result<void>> run(DriveOp& op) override;
  bool run_now(const Request& request, Memory data, Result<void>& done) override;
  task::Task<Result<void>> read(DriveOp& op);
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> pass(DriveOp& op);
  bool has_all(const Request& request) const;
  // Copies what is here, in order; says which blocks lack first and last.
  struct Lack {
    uint64_t first = UINT64_MAX;
    uint64_t end = 0;
  };
  Lack take(const Request& request, Memory data);
  void keep(uint64_t first, uint64_t blocks, Memory data);
  void drop(uint64_t first, uint64_t blocks);
  MutableBytes slot_bytes(uint32_t slot) {
    return memory_->bytes().subspan(size_t{slot} * geometry_.block_size, geometry_.block_size);
  }

  env::Env& env_;
  std::unique_ptr<env::Memory> memory_;
  Lru lru_;
  Ranges ranges_;  // what is read to be kept is not changed meanwhile
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

task::Task<Result<void>> MemoryCache::run(DriveOp& op) {
  const bool is_read = op.request.kind == Kind::kRead;
  const bool keeps = (is_read && op.request.copy == 0) || op.request.writes();
  if (!keeps) return pass(op);
  // What is kept never was where somebody else could write. What is here already is only given.
  if (has_unstable_memory(op.request) && !(is_read && has_all(op.request))) {
    return run_on_copy(env_, *this, op);
  }
  return is_read ? read(op) : change(op);
}

task::Task<Result<void>> MemoryCache::pass(DriveOp& op) {
  const Result<void> done = co_await below().submit(op.request, op.data(), op.second(), op.token());
  co_return done;
}

bool MemoryCache::has_all(const Request& request) const {
  for (uint64_t i = 0; i < request.blocks; ++i) {
    if (lru_.find(request.lba.value() + i) == Lru::kNone) return false;
  }
  return true;
}

bool MemoryCache::run_now(const Request& request, Memory data, Result<void>& done) {
  if (request.kind != Kind::kRead || request.copy != 0 || !has_all(request)) return false;
  take(request, data);
  done = {};
  return true;
}

MemoryCache::Lack MemoryCache::take(const Request& request, Memory data) {
  Lack lack;
  Walk walk(data);
  for (uint64_t i = 0; i < request.blocks; ++i) {
    const uint32_t slot = lru_.find(request.lba.value() + i);
    if (slot == Lru::kNone) {
      ++misses_;
      lack.first = std::min(lack.first, i);
      lack.end = i + 1;
      walk.next(geometry_.block_size, [](MutableBytes, size_t) {});
      continue;
    }
    ++hits_;
    lru_.use(slot);
    walk.next(geometry_.block_size, [from = slot_bytes(slot)](MutableBytes to, size_t at) {
      std::memcpy(to.data(), from.data() + at, to.size());
    });
  }
  return lack;
}

void MemoryCache::keep(uint64_t first, uint64_t blocks, Memory data) {
  Walk walk(data);
  for (uint64_t i = 0; i < blocks; ++i) {
    uint32_t slot = lru_.find(first + i);
    if (slot == Lru::kNone) {
      slot = lru_.oldest();
      lru_.put(slot, first + i);
    } else {
      lru_.use(slot);
    }
    walk.next(geometry_.block_size, [to = slot_bytes(slot)](MutableBytes from, size_t at) {
      std::memcpy(to.data() + at, from.data(), from.size());
    });
  }
}

void MemoryCache::drop(uint64_t first, uint64_t blocks) {
  if (blocks > lru_.used()) {
    for (uint32_t slot = 0; slot < lru_.size(); ++slot) {
      const bool is_inside = lru_.key(slot) >= first && lru_.key(slot) - first < blocks;
      if (lru_.is_used(slot) && is_inside) lru_.drop(slot);
    }
    return;
  }
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint32_t slot = lru_.find(first + i);
    if (slot != Lru::kNone) lru_.drop(slot);
  }
}

// What lacks is read with one request, from the first block that does to the last.
task::Task<Result<void>> MemoryCache::read(DriveOp& op) {
  if (has_all(op.request)) {
    take(op.request, op.data());
    co_return Result<void>();
  }
  const uint64_t first = op.request.lba.value();
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, first, op.request.blocks, op.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const Lack lack = take(op.request, op.data());
  if (lack.end == 0) co_return Result<void>();
  Pieces part;
  part.add(op.data(), lack.first * geometry_.block_size,
           (lack.end - lack.first) * geometry_.block_size);
  Request request = op.request;
  request.lba = Lba(first + lack.first);
  request.blocks = lack.end - lack.first;
  const Result<void> done = co_await below().submit(request, part.all(), {}, op.token());
  if (done) keep(first + lack.first, request.blocks, part.all());
  co_return done;
}

task::Task<Result<void>> MemoryCache::change(DriveOp& op) {
  const uint64_t first = op.request.lba.value();
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, first, op.request.blocks, op.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const bool has_data = op.request.kind == Kind::kWrite;
  const Result<void> done = co_await pass(op);
  if (done && (has_data || op.request.kind == Kind::kCompareAndWrite)) {
    keep(first, op.request.blocks, has_data ? op.data() : op.second());
  } else if (done || done.error() != Errc::kMismatch) {
    drop(first, op.request.blocks);
  }
  co_return done;
}

task::Task<Result<void>> MemoryCache::resize(uint64_t blocks) {
  const Result<void> done = co_await below().resize(blocks);
  if (done && blocks < geometry_.blocks) drop(blocks, geometry_.blocks - blocks);
  geometry_.blocks = below().geometry().blocks;
  co_return done;
}

}  // namespace

task::Task<Result<std::unique_ptr<Drive>>> open_memory_cache(ServiceParts parts) {
  const uint32_t block_size = parts.below[0]->geometry().block_size;
  const uint64_t slots = parts.options.number("memory") / block_size;
  if (slots == 0) co_return fail(Errc::kInvalid, "memory is less than a block of the drive below");
  Result<std::unique_ptr<env::Memory>> memory = parts.env.map_memory(slots * block_size);
  if (!memory) co_return fail(memory.error());
  co_return std::make_unique<MemoryCache>(parts.env, std::move(parts.below), std::move(*memory),
                                          static_cast<uint32_t>(slots));
}

}  // namespace cairn::drive
