// SPDX-License-Identifier: Apache-2.0
#include "testing/stack/stack_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::stack {

namespace {

using drive::Request;
using Kind = Request::Kind;

// The word at `at` of a block that holds `value`.
uint64_t word_of(uint64_t value, size_t at, bool is_noise) {
  return at == 0 || value == 0 || !is_noise ? value : mix64(mix64(value) + at);
}

void fill(MutableBytes block, uint64_t value, bool is_noise) {
  for (size_t at = 0; at < block.size(); at += sizeof value) {
    store(block.subspan(at), word_of(value, at, is_noise));
  }
}

// What the block holds; all ones when it is not one value throughout.
uint64_t value_of(Bytes block, bool is_noise) {
  const auto value = load<uint64_t>(block);
  for (size_t at = 0; at < block.size(); at += sizeof value) {
    if (load<uint64_t>(block.subspan(at)) != word_of(value, at, is_noise)) return UINT64_MAX;
  }
  return value;
}

Kind draw_kind(Rng& rng) {
  const uint64_t draw = rng.below(100);
  if (draw < 38) return Kind::kRead;
  if (draw < 74) return Kind::kWrite;
  if (draw < 79) return Kind::kDiscard;
  if (draw < 84) return Kind::kWriteZeroes;
  if (draw < 90) return Kind::kCompare;
  return draw < 96 ? Kind::kCompareAndWrite : Kind::kFlush;
}

const char* name(Kind kind) {
  constexpr const char* kNames[] = {"read",  "write",   "compare",     "compare-and-write",
                                    "flush", "discard", "write-zeroes"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

void StackLoad::wrong(std::string text) {
  if (failure_.empty()) failure_ = fmt::format("{}: {}", options_.stack, text);
}

bool StackLoad::goes_on(env::Env& env) const {
  return failure_.empty() && !env.stop_token().requested();
}

task::Task<void> StackLoad::live(env::Env& env) {
  drive::LeavesWithFiles sources(options_.files);
  drive::Leaves& leaves = options_.leaves != nullptr ? *options_.leaves : sources;
  std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(options_.stack);
  drive::LiveOpened opened = std::unexpected(stack ? drive::StackError() : stack.error());
  if (stack) opened = co_await drive::open_live_stack(env, *stack, leaves);
  if (!opened) {
    if (!env.stop_token().requested() && !options_.may_not_open) {
      wrong(fmt::format("it does not open: {}", opened.error().text));
    }
    co_return;
  }
  drive::Drive& drive = **opened;
  if (on_open) on_open(&drive);
  if (on_live) on_live(opened->get());
  const size_t blocks = drive.geometry().blocks;
  if (model_.empty()) model_.emplace_back(blocks);
  if (model_[0].size() != blocks) wrong("its size has changed");
  claimed_.assign(blocks, false);
  begun_ = 0;
  owes_error_ = false;  // a drive that was closed without a flush owes nobody an answer
  settle_kill(drive);
  if (failure_.empty()) co_await check_all(env, drive);
  if (options_.fills && !std::exchange(is_filled_, true)) co_await fill_all(env, drive);
  if (on_load && goes_on(env)) on_load();
  std::vector<task::Task<void>> workers;
  for (size_t i = 0; i < options_.workers; ++i) workers.push_back(work(env, drive));
  co_await task::when_all(std::move(workers));
  if (on_open) on_open(nullptr);
  if (on_live) on_live(nullptr);
  co_await drive.close();
  if (!env.stop_token().requested()) ++finished_;
}

void StackLoad::settle_kill(const drive::Drive& drive) {
  const uint64_t before = std::exchange(local_opening_, drive.incarnation().local_opening);
  if (!std::exchange(was_killed_, false)) return;
  if (before != 0 && before == local_opening_) {
    ++kept_;
  } else {
    for (BlockModel& model : model_) model.killed();
  }
}

task::Task<void> StackLoad::check_all(env::Env& env, drive::Drive& drive) {
  const uint32_t size = drive.geometry().block_size;
  const size_t step = std::min<size_t>(drive.geometry().transfer_blocks, 64);
  std::vector<std::byte> memory(step * size);
  for (size_t first = 0; first < model_[0].size() && goes_on(env); first += step) {
    const size_t count = std::min(step, model_[0].size() - first);
    const MutableBytes piece = MutableBytes(memory).first(count * size);
    const Result<void> read = co_await drive.read(Lba(first), piece);
    const bool must_succeed = options_.errors_are_wrong || options_.faults_come_late;
    if (!read && (must_succeed || env.stop_token().requested())) {
      if (goes_on(env)) wrong(fmt::format("reading block {}: {}", first, read.error().text()));
      co_return;
    }
    for (size_t i = 0; read && i < count; ++i) {
      const uint64_t value = value_of(piece.subspan(i * size, size), options_.is_noise);
      const bool is_right = has_crashed_ ? model_[0].read_after_crash(first + i, value)
                                         : model_[0].read(first + i, value, true);
      if (!is_right) wrong(fmt::format("block {} holds {} when opened", first + i, value));
    }
  }
  has_crashed_ = false;
}

task::Task<void> StackLoad::fill_all(env::Env& env, drive::Drive& drive) {
  const uint32_t size = drive.geometry().block_size;
  const size_t step = std::min<size_t>(drive.geometry().transfer_blocks, 64);
  std::vector<std::byte> memory(step * size);
  for (size_t first = 0; first < model_[0].size() && goes_on(env); first += step) {
    const size_t count = std::min(step, model_[0].size() - first);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t value = 1 + next_value_++ % options_.values;
      fill(MutableBytes(memory).subspan(i * size, size), value, options_.is_noise);
      model_[0].begin(first + i, value);
    }
    const Result<void> done =
        co_await drive.write(Lba(first), MutableBytes(memory).first(count * size));
    if (!done && goes_on(env) && (options_.errors_are_wrong || options_.faults_come_late)) {
      wrong(fmt::format("filling block {}: {}", first, done.error().text()));
    }
    for (size_t i = 0; done && i < count; ++i) {
      model_[0].succeeded(first + i, !drive.geometry().volatile_cache);
    }
  }
  co_await flush(env, drive);
}

bool StackLoad::claim(Range range) {
  for (size_t i = 0; i < range.count; ++i) {
    if (claimed_[range.first + i]) return false;
  }
  for (size_t i = 0; i < range.count; ++i) claimed_[range.first + i] = true;
  return true;
}
void StackLoad::release(Range range) {
  for (size_t i = 0; i < range.count; ++i) claimed_[range.first + i] = false;
}
bool StackLoad::is_certain(Range range) const {
  for (size_t i = 0; i < range.count; ++i) {
    if (!model_[0].is_certain(range.first + i)) return false;
  }
  return true;
}

task::Task<void> StackLoad::work(env::Env& env, drive::Drive& drive) {
  Rng& rng = env.rng();
  while (goes_on(env) && begun_ < options_.requests) {
    ++begun_;
    if (options_.think_max > 0_s) {
      const Duration thinks{static_cast<int64_t>(rng.below(options_.think_max.ns))};
      const Result<void> slept = co_await task::sleep_for(env, thinks, env.stop_token());
      if (!slept) co_return;
    }
    const bool flushes = options_.flush_share > 0 && rng.bernoulli(options_.flush_share);
    const Kind kind = flushes ? Kind::kFlush : draw_kind(rng);
    if (kind == Kind::kFlush) {
      co_await flush(env, drive);
      continue;
    }
    const bool moves_data = kind != Kind::kDiscard && kind != Kind::kWriteZeroes;
    const size_t max = moves_data ? std::min<size_t>(drive.geometry().transfer_blocks, 40) : 200;
    const size_t count = rng.between(1, rng.bernoulli(0.7) ? 4 : std::min(max, claimed_.size()));
    const Range range{rng.below(claimed_.size() - count + 1), count};
    if (!claim(range)) {
      const Result<void> slept = co_await task::sleep_for(env, 20_us, env.stop_token());
      if (!slept) co_return;
      continue;
    }
    co_await request(env, drive, range, kind);
    release(range);
    ++done_;
  }
}

task::Task<void> StackLoad::flush(env::Env& env, drive::Drive& drive) {
  const auto begun = model_[0].flush_begins();
  const Time begun_at = env.now();
  const bool must_fail = owes_error_;
  const Result<void> done = co_await drive.flush();
  if (done && must_fail && owes_error_) wrong("a flush succeeded though writes had been lost");
  if (!done) owes_error_ = false;
  if (!done) failed_at_.insert(env.now());
  if (done) {
    // The answer that another one failed was on its way up when this one began: whoever gets both
    // knows that writes were lost.
    if (!failed_at_.contains(begun_at)) model_[0].flush_done(begun);
    if (on_flushed) on_flushed();
  } else if (options_.errors_are_wrong && goes_on(env)) {
    wrong(fmt::format("flush: {}", done.error().text()));
  } else {
    lost_below();
  }
  if (!done) co_await pause(env);
}

task::Task<void> StackLoad::request(env::Env& env, drive::Drive& drive, Range range, Kind kind) {
  Rng& rng = env.rng();
  const uint32_t size = drive.geometry().block_size;
  const bool compares = kind == Kind::kCompare || kind == Kind::kCompareAndWrite;
  if (compares && !is_certain(range)) kind = Kind::kRead;
  Request request{.kind = kind,
                  .durable = rng.bernoulli(options_.durable_share),
                  .priority = static_cast<drive::Priority>(rng.below(4)),
                  .lba = Lba(range.first),
                  .blocks = range.count};
  if (kind == Kind::kRead || kind == Kind::kCompare) request.durable = false;
  const Begun begun{.must_match = rng.bernoulli(0.8), .losses = losses_};
  std::vector<std::byte> data(range.count * size);
  std::vector<std::byte> second(data.size());
  for (size_t i = 0; i < range.count; ++i) {
    const MutableBytes first = MutableBytes(data).subspan(i * size, size);
    const bool writes = kind == Kind::kWrite;
    const uint64_t value = 1 + next_value_++ % options_.values;
    if (kind != Kind::kRead) {
      fill(first, writes ? value : model_[0].value(range.first + i), options_.is_noise);
    }
    fill(MutableBytes(second).subspan(i * size, size), value, options_.is_noise);
    const bool zeroes = kind == Kind::kDiscard || kind == Kind::kWriteZeroes;
    const bool changes = request.writes() && (kind != Kind::kCompareAndWrite || begun.must_match);
    if (changes) model_[0].begin(range.first + i, zeroes ? 0 : value);
  }
  // In the last byte of all, so that every part but one agrees.
  if ((kind == Kind::kCompare || kind == Kind::kCompareAndWrite) && !begun.must_match) {
    data.back() ^= std::byte{1};
  }
  // Memory in three pieces, cut anywhere that is aligned as drives ask for nothing.
  const size_t cut = rng.below(data.size() / 8) * 8;
  const MutableBytes pieces[] = {MutableBytes(data).first(cut), MutableBytes(data).subspan(cut)};
  const MutableBytes others[] = {MutableBytes(second)};
  const bool moves_data = kind != Kind::kDiscard && kind != Kind::kWriteZeroes;
  const bool two = kind == Kind::kCompareAndWrite;
  const Time until = rng.bernoulli(options_.cancel_share)
                         ? env.now() + Duration{static_cast<int64_t>(rng.below(300'000))}
                         : Time::never();
  task::Deadline deadline(env, until);
  const Result<void> done = co_await drive.submit(
      request, moves_data ? std::span<const MutableBytes>(pieces) : std::span<const MutableBytes>(),
      two ? std::span<const MutableBytes>(others) : std::span<const MutableBytes>(),
      deadline.token());
  const bool was_stopped = !done && deadline.expired();
  const bool is_fault = !done && done.error() != Errc::kMismatch && !was_stopped;
  if (is_fault && goes_on(env) && options_.errors_are_wrong) {
    wrong(fmt::format("{} of block {}: {}", name(kind), range.first, done.error().text()));
  }
  if (!env.stop_token().requested()) settle(request, range, done, data, begun, drive);
  if (is_fault) co_await pause(env);
}

bool StackLoad::is_safe(Range range) const {
  for (size_t i = 0; i < range.count; ++i) {
    if (!model_[0].is_safe(range.first + i)) return false;
  }
  return true;
}

void StackLoad::forgot() {
  owes_error_ = true;
  lost_below();
}

void StackLoad::lost_below() {
  ++losses_;
  if (!model_.empty()) model_[0].lose_certainty();
}

// A drive that fails everything at once must not keep time from passing.
task::Task<void> StackLoad::pause(env::Env& env) {
  const Result<void> slept = co_await task::sleep_for(env, 100_us, env.stop_token());
  (void)slept;  // stopped: whoever goes on looks
}

void StackLoad::settle(const Request& request, Range range, const Result<void>& done,
                       const std::vector<std::byte>& data, const Begun& begun,
                       drive::Drive& drive) {
  const bool was_lost = begun.losses != losses_;
  const uint32_t size = drive.geometry().block_size;
  const bool compares = request.kind == Kind::kCompare || request.kind == Kind::kCompareAndWrite;
  if (compares && done && !begun.must_match) {
    wrong(fmt::format("{} of block {} found other bytes equal", name(request.kind), range.first));
  }
  if (!done && done.error() == Errc::kMismatch && (begun.must_match || !compares) && !was_lost) {
    if (options_.may_forget && compares && !is_safe(range)) return forgot();
    wrong(
        fmt::format("{} of block {} found equal bytes different", name(request.kind), range.first));
  }
  if (!done) return;
  const bool durable = request.durable || !drive.geometry().volatile_cache;
  for (size_t i = 0; i < range.count; ++i) {
    const size_t block = range.first + i;
    if (request.kind == Kind::kRead) {
      const uint64_t value = value_of(Bytes(data).subspan(i * size, size), options_.is_noise);
      if (model_[0].read(block, value, !was_lost)) continue;
      if (options_.may_forget && model_[0].may_have_lost(block, value)) {
        forgot();
      } else {
        wrong(fmt::format("block {} holds {}, not {}", block, value, model_[0].value(block)));
      }
    } else if (request.writes()) {
      const bool by_itself = request.kind != Kind::kDiscard || !drive.geometry().volatile_cache;
      if (!was_lost || (durable && by_itself)) model_[0].succeeded(block, durable && by_itself);
    }
  }
  if (request.writes() && request.durable && on_durable) on_durable();
}

}  // namespace cairn::stack
