// SPDX-License-Identifier: Apache-2.0
// Which lines are on the fast drive, what the journal says of them, and how they get to the slow
// one.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "service/cache/fast_cache.h"

namespace cairn::drive {

namespace {

constexpr size_t kLinesAtOnceMin = 4;
constexpr size_t kLinesAtOnceMax = 32;
constexpr uint32_t kLooksMax = 64;     // for a slot to take, before a request goes around the cache
constexpr Duration kCleanPause = 1_s;  // when a whole round wrote nothing back
constexpr size_t kSavedTogether = 64;

}  // namespace

FastCache::FastCache(env::Env& env, std::vector<std::unique_ptr<Drive>> drives,
                     const FastCacheOptions& options, FastCacheFound found)
    : ServiceDrive(std::move(drives)),
      env_(env),
      options_(options),
      found_(std::move(found)),
      slow_claim_(env, slow(), found_.slow_label),
      fast_claim_(env, fast(), found_.fast_label),
      lru_(static_cast<uint32_t>(found_.fast.slots)),
      slots_(found_.fast.slots),
      guard_(env, *this, gate()) {
  guard_.add(fast());
  geometry_ = slow().geometry();
  geometry_.blocks = found_.slow.data_blocks;
  geometry_.atomic_blocks = 1;
  geometry_.volatile_cache = true;
  geometry_.copies = 1;
}

task::Task<Result<void>> FastCache::begin(bool is_new) {
  guard_.begin();
  const bool is_slow_new = found_.slow_label.generation == 0;
  if (is_slow_new) {
    found_.slow_label.body = encode_slow_state(found_.slow);
    Result<void> written = co_await begin_label(env_, slow(), kSlowLabel, found_.slow_label);
    if (written) written = co_await finish_label(env_, slow(), kSlowLabel, found_.slow_label);
    if (!written) co_return written;
  }
  const JournalArea area{.first = kLabelBlocks, .blocks = found_.fast.journal_blocks};
  const Result<void> started = co_await Journal::start(
      {env_, fast(), area, kFastLabel, found_.fast_label, *this, fast_claim_}, is_new, journal_);
  if (!started) co_return started;
  found_.fast.openings = found_.slow.openings + 1;
  found_.fast_label.body = encode_fast_state(found_.fast);
  const auto write_fast_label = is_new ? finish_label : write_label;
  const Result<void> named = co_await write_fast_label(env_, fast(), kFastLabel, found_.fast_label);
  if (!named) co_return named;
  found_.slow.openings = found_.fast.openings;
  found_.slow.needs_fast = options_.is_back || !dirty_lines_.empty() ? 1 : 0;
  found_.slow_label.body = encode_slow_state(found_.slow);
  const auto write_slow_label = is_slow_new ? write_label : claim_label;
  const Result<void> written =
      co_await write_slow_label(env_, slow(), kSlowLabel, found_.slow_label);
  if (written) wake_cleaner();
  co_return written;
}

task::Task<Result<void>> FastCache::free_slow() {
  found_.slow.needs_fast = 0;
  found_.slow_label.body = encode_slow_state(found_.slow);
  co_return co_await write_label(env_, slow(), kSlowLabel, found_.slow_label);
}

task::Task<void> FastCache::close() {
  if (options_.drains && journal_ != nullptr) {
    [[maybe_unused]] const Result<void> drained = co_await drain();  // what is left stays dirty
  }
  is_closing_ = true;
  co_await gate().close();
  if (journal_ != nullptr) {
    co_await journal_->close();
    // What the journal on the fast drive says, not only what is known here.
    const bool is_said = !journal_->has_lost() && journal_->durable() == journal_->added();
    if (is_said && dirty_lines_.empty() && found_.slow.needs_fast != 0) {
      // If it fails the fast drive is asked for next time, and has nothing to say.
      [[maybe_unused]] const Result<void> freed = co_await free_slow();
    }
  }
  co_await slow().close();
  co_await fast().close();
}

Result<void> FastCache::replay(Bytes bytes) {
  const Result<FastRecord> record = decode_fast_record(bytes, found_.fast, found_.slow);
  if (!record) return fail(record.error());
  const auto slot = static_cast<uint32_t>(record->slot);
  const uint32_t other = find(record->line);
  if (lru_.is_used(slot)) {
    dirty_lines_.erase(lru_.key(slot));
    lru_.drop(slot);
  }
  slots_[slot] = {};
  if (record->dirty == 0) return {};
  if (other != Lru::kNone && other != slot) {
    return fail(Errc::kCorrupt, "the cache's journal has a line in two slots");
  }
  lru_.put(slot, record->line);
  slots_[slot].valid = slots_[slot].dirty = record->dirty;
  dirty_lines_.insert(record->line);
  return {};
}

Result<void> FastCache::check_replayed() const {
  if (found_.slow.needs_fast != 0 || dirty_lines_.empty()) return {};
  return fail(Errc::kInvalid,
              "the fast drive has data that the slow one was closed without: it is of another "
              "time. Discard its first 64K to use it");
}

task::Task<Result<void>> FastCache::reload_map() {
  for (uint32_t slot = 0; slot < lru_.size(); ++slot) {
    if (lru_.is_used(slot)) lru_.drop(slot);
  }
  slots_.assign(found_.fast.slots, {});
  dirty_lines_.clear();
  stuck_.clear();
  co_return co_await journal_->reload();
}

bool FastCache::has_newer() const {
  return options_.is_back || !dirty_lines_.empty() || journal_->has_lost() ||
         journal_->durable() < journal_->added();
}

void FastCache::forget_clean_if_lost() {
  if (has_newer() || !guard_.has_changed()) return;
  for (Slot& slot : slots_) slot.valid = 0;
  ++forgotten_;
  guard_.forgive();
}

std::optional<uint64_t> FastCache::save(uint64_t from, JournalRecords& records) const {
  auto line = dirty_lines_.lower_bound(from);
  for (size_t i = 0; i < kSavedTogether && line != dirty_lines_.end(); ++i, ++line) {
    const uint32_t slot = find(*line);
    records.add(FastRecord{.line = *line, .dirty = slots_[slot].dirty, .slot = slot});
  }
  return line == dirty_lines_.end() ? std::nullopt : std::optional(*line);
}

uint32_t FastCache::find_or_take(uint64_t line) {
  if (const uint32_t slot = find(line); slot != Lru::kNone) return slot;
  const uint64_t durable = journal_->durable();
  const auto may_go = [&](uint32_t slot) {
    const Slot& here = slots_[slot];
    return here.dirty == 0 && here.users == 0 && here.free_after <= durable;
  };
  const uint32_t slot = lru_.oldest(may_go, kLooksMax);
  if (slot == Lru::kNone) return slot;
  slots_[slot].valid = 0;
  lru_.put(slot, line);
  return slot;
}

bool FastCache::is_dirty(Span blocks) const {
  bool is = false;
  const auto look = [&](const Part& part) {
    const uint32_t slot = find(part.line);
    is = is || (slot != Lru::kNone && (slots_[slot].dirty & part.mask()) != 0);
  };
  for_each_dirty_part(blocks, look);
  return is;
}

// What is there and not dirty is there no more.
void FastCache::forget(Span blocks) {
  if (blocks.count / line_blocks() > lru_.size()) {
    const uint64_t end = blocks.first + blocks.count;
    for (uint32_t slot = 0; slot < lru_.size(); ++slot) {
      const uint64_t first = lru_.key(slot) * line_blocks();
      const bool touches = first < end && first + line_blocks() > blocks.first;
      if (!lru_.is_used(slot) || !touches) continue;
      const uint64_t from = std::max(first, blocks.first);
      const Part part{.first = static_cast<uint32_t>(from - first),
                      .count = static_cast<uint32_t>(std::min(first + line_blocks(), end) - from)};
      slots_[slot].valid &= ~(part.mask() & ~slots_[slot].dirty);
    }
    return;
  }
  for_each_part(blocks, [&](const Part& part) {
    const uint32_t slot = find(part.line);
    if (slot != Lru::kNone) slots_[slot].valid &= ~(part.mask() & ~slots_[slot].dirty);
  });
}

void FastCache::set_dirty(uint32_t slot, uint64_t dirty, Journal::Needs needs) {
  const uint64_t line = lru_.key(slot);
  slots_[slot].dirty = dirty;
  if (dirty == 0) {
    dirty_lines_.erase(line);
    stuck_.erase(line);
  } else {
    dirty_lines_.insert(line);
  }
  const uint64_t number =
      journal_->add(FastRecord{.line = line, .dirty = dirty, .slot = slot}, needs);
  if (dirty == 0) slots_[slot].free_after = number;
}

uint64_t FastCache::dirty_target() const {
  return options_.is_back ? slots_.size() * options_.dirty_target / 100 : 0;
}

void FastCache::wake_cleaner() {
  if (cleaner_runs_ || is_closing_ || dirty_lines_.size() <= dirty_target()) return;
  if (env_.now() < clean_again_) return;
  cleaner_runs_ = true;
  gate().spawn(clean_to_target());
}

// More at once the more there is. Lines that the slow drive does not take stay dirty, and the
// others go on: it gives up after a whole round that only met such, until a later write wakes it.
task::Task<void> FastCache::clean_to_target() {
  const uint64_t target = dirty_target();
  uint64_t cleaned_before = UINT64_MAX;  // when the round began; this one began somewhere
  while (!is_closing_ && dirty_lines_.size() > target) {
    const uint64_t over = dirty_lines_.size() - target;
    const size_t max = kLinesAtOnceMax - kLinesAtOnceMin;
    const size_t lines = kLinesAtOnceMin + max * over / (slots_.size() - target + 1);
    if (cleaning_.from == UINT64_MAX) {
      const bool is_stuck = !cleaning_.failed && cleaned_ == cleaned_before;
      cleaning_ = {};
      cleaned_before = cleaned_;
      if (is_stuck) clean_again_ = env_.now() + kCleanPause;
      if (is_stuck) break;
    }
    const Result<void> done = co_await clean(cleaning_, lines);
    if (!done) break;  // the next write wakes it
  }
  cleaner_runs_ = false;
}

task::Task<Result<void>> FastCache::drain() {
  Round round;
  while (round.from != UINT64_MAX) {
    const Result<void> done = co_await clean(round, kLinesAtOnceMax);
    if (!done) co_return done;
  }
  co_return round.failed;
}

task::Task<Result<void>> FastCache::clean(Round& round, size_t lines) {
  std::vector<Cleaned> chosen;
  for (auto at = dirty_lines_.lower_bound(round.from); at != dirty_lines_.end(); ++at) {
    if (chosen.size() == lines) break;
    chosen.push_back({.line = *at});
  }
  round.from = chosen.size() < lines ? UINT64_MAX : chosen.back().line + 1;
  if (chosen.empty()) co_return Result<void>();
  const Result<void> mine = co_await slow_claim_.check();
  if (!mine) co_return mine;
  const Error lost(Errc::kIo, "the fast drive lost writes that were not flushed");
  if (!guard_.is_sound()) co_return fail(lost);
  const MapGuard::Use use(guard_);
  const uint64_t losses = slow_losses_.count();
  Watch slow_watch;
  slow_watch.look(slow());
  Join join;
  for (Cleaned& one : chosen) {
    join.add();
    gate().spawn(copy_down(one, join));
  }
  const Result<void> all = co_await join.all();
  if (!all && round.failed) round.failed = all;
  const Result<void> flushed = co_await slow().flush();
  slow_losses_.flushed(flushed);
  if (!flushed) co_return flushed;
  // What was copied may be lost, and another flush have been told.
  if (losses != slow_losses_.count() || slow_watch.has_changed(slow())) {
    co_return fail(Errc::kIo, "the slow drive lost writes that were not flushed");
  }
  if (!guard_.is_sound()) co_return fail(lost);
  for (const Cleaned& one : chosen) {
    if (!one.result && dirty_lines_.contains(one.line)) stuck_.insert(one.line);
    if (!one.result || one.slot == Lru::kNone) continue;  // the map was read anew meanwhile
    const bool is_same = find(one.line) == one.slot && slots_[one.slot].version == one.version &&
                         slots_[one.slot].dirty != 0;
    if (!is_same) continue;
    set_dirty(one.slot, 0, Journal::Needs::kNothing);
    ++cleaned_;
  }
  co_return co_await journal_->commit();
}

// The dirty blocks of a line to the slow drive, while nobody changes them.
task::Task<void> FastCache::copy_down(Cleaned& one, Join& join) {
  const uint64_t first = one.line * line_blocks();
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, first, line_blocks());
  one.result = co_await hold;
  one.slot = find(one.line);
  if (one.slot == Lru::kNone || slots_[one.slot].dirty == 0) co_return join.finish({});
  Slot& here = slots_[one.slot];
  one.version = here.version;
  Result<Scratch> memory = Scratch::make(env_, line_blocks() * geometry_.block_size);
  if (!memory) one.result = fail(memory.error());
  ++here.users;
  const uint64_t dirty = here.dirty;
  for (uint64_t at = 0; at < line_blocks() && one.result;) {
    const auto rest = dirty >> at;
    if (rest == 0) break;
    at += static_cast<uint64_t>(std::countr_zero(rest));
    const auto count = static_cast<uint64_t>(std::countr_one(dirty >> at));
    const MutableBytes bytes = memory->first(count * geometry_.block_size);
    one.result = co_await fast().read(fast_lba(one.slot, at), bytes);
    if (!guard_.is_sound()) one.result = fail(Errc::kIo, "the fast drive lost writes");
    if (one.result) one.result = co_await slow().write(slow_lba(first + at), bytes);
    at += count;
    if (at == 64) break;
  }
  --here.users;
  join.finish(one.result);
}

Extent FastCache::extent_at(Lba lba, uint64_t max) const {
  const uint64_t first = lba.value();
  max = std::min({max, geometry_.blocks - first, 1024 * line_blocks()});
  if (guard_.is_lost()) return {.blocks = max};
  uint64_t before = max;  // blocks of which the fast drive has none
  for_each_part({first, max}, [&](const Part& part) {
    const uint32_t slot = find(part.line);
    if (slot == Lru::kNone) return;
    const uint64_t there = slots_[slot].valid & part.mask();
    if (there == 0) return;
    const auto at = static_cast<uint64_t>(std::countr_zero(there)) - part.first + part.at;
    before = std::min(before, at);
  });
  if (before == 0) return {.blocks = 1, .is_hole = false};
  return below(0).extent_at(Lba(found_.slow.data_first + first), before);
}

std::vector<Fact> FastCache::facts() const {
  return {{"hits", hits_},
          {"misses", misses_},
          {"lines", slots_.size()},
          {"lines_used", lru_.used()},
          {"lines_dirty", dirty_lines_.size()},
          {"lines_written_back", cleaned_},
          {"writes_around", around_},
          {"lines_stuck", stuck_.size()},
          {"fast_errors", fast_errors_},
          {"line_bytes", line_blocks() * geometry_.block_size}};
}

std::vector<Concern> FastCache::concerns() const {
  std::vector<Concern> all = guard_.concerns();
  if (!stuck_.empty()) {
    all.push_back({.code = "not_written_back",
                   .what = fmt::format("{} lines cannot be written to the slow drive; the fast one "
                                       "keeps them, and they are tried again",
                                       stuck_.size()),
                   .below = 0});
  }
  if (!may_ask_fast()) {
    all.push_back({.code = "fast_drive_fails",
                   .what = "the fast drive fails or does not answer; what the slow one has is read "
                           "there, and the fast one is tried again after 5 s",
                   .below = 1});
  }
  return all;
}

task::Task<std::expected<std::string, std::string>> FastCache::tell(std::vector<std::string> args) {
  if (args.size() != 1 || args[0] != "flush") {
    co_return std::unexpected("cache knows one command: flush, which writes all back");
  }
  const uint64_t before = cleaned_;
  const Result<void> done = co_await drain();
  if (!done) {
    co_return std::unexpected(fmt::format("{} lines written back, {} are still dirty: {}",
                                          cleaned_ - before, dirty_lines_.size(),
                                          done.error().text()));
  }
  co_return fmt::format("{} lines written back, {} are dirty again", cleaned_ - before,
                        dirty_lines_.size());
}

}  // namespace cairn::drive
