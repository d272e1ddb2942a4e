// SPDX-License-Identifier: Apache-2.0
// How what was read or written gets onto the fast drive for the next reader. Nobody waits long for
// it, and it is never cancelled: a write that was given up could land over what came after it.
#include <algorithm>
#include <utility>

#include "drive/scatter.h"
#include "service/cache/fast_cache.h"

namespace cairn::drive {

namespace {

constexpr size_t kFillsMax = 32;  // on their way at once; what is read meanwhile is not kept

}  // namespace

// Blocks as they are on the slow drive. The hold goes with them: nobody changes them meanwhile.
void FastCache::fill_later(Span blocks, Memory memory, size_t offset, Hold hold) {
  if (fills_ == kFillsMax || is_closing_ || !may_ask_fast() || guard_.is_lost()) return;
  Result<Scratch> data = Scratch::make(env_, blocks.count * geometry_.block_size);
  if (!data) return;
  gather(memory, offset, data->bytes());
  ++fills_;
  gate().spawn(fill(blocks, std::move(*data), std::move(hold)));
}

// Whoever changes the blocks waits for the hold, and gets it when the timeout ends: what comes onto
// the fast drive after that may be old, and does not count.
task::Task<void> FastCache::fill(Span blocks, Scratch data, Hold hold) {
  FillTimer timeout([](task::Timer& timer) {
    auto& fired = static_cast<FillTimer&>(timer);
    fired.hold.reset();
    fired.cache->fast_failed();
  });
  timeout.cache = this;
  timeout.hold = std::move(hold);
  env_.arm(timeout, env_.now() + kFastTimeout);
  const MapGuard::Use use(guard_);
  std::vector<Part> parts;
  for_each_part(blocks, [&](const Part& part) { parts.push_back(part); });
  for (const Part& part : parts) {
    const uint32_t slot = may_ask_fast() ? find_or_take(part.line) : Lru::kNone;
    if (slot == Lru::kNone) continue;
    Slot& here = slots_[slot];
    std::vector<Span> runs;
    for_each_run(part.mask() & ~here.valid & ~here.filling,
                 [&](uint32_t first, uint32_t count) { runs.push_back({first, count}); });
    ++here.users;
    for (const Span& run : runs) {
      const MutableBytes bytes =
          data.subspan((part.at + run.first - part.first) * geometry_.block_size,
                       run.count * geometry_.block_size);
      const Part filled{.first = static_cast<uint32_t>(run.first),
                        .count = static_cast<uint32_t>(run.count)};
      here.filling |= filled.mask();
      const uint64_t forgotten = forgotten_;
      const Result<void> done = co_await fast().write(fast_lba(slot, run.first), bytes);
      here.filling &= ~filled.mask();
      fill_ended_.set();
      if (!done) fast_failed();
      if (!done || timeout.hold == nullptr || has_lost_since(forgotten)) break;
      here.valid |= filled.mask();
    }
    --here.users;
    if (timeout.hold == nullptr) break;
  }
  --fills_;
}

// Before the same blocks of a slot are written: whichever write lands last is what is there.
task::Task<Result<void>> FastCache::fills_end(const Slot& slot, uint64_t mask,
                                              task::CancelToken token) {
  while ((slot.filling & mask) != 0) {
    fill_ended_.reset();
    const Result<void> ended = co_await fill_ended_.wait(token);
    if (!ended) co_return ended;
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
