// SPDX-License-Identifier: Apache-2.0
// What checksum does by itself: settles what crashes left, forgets marks, repairs, scrubs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/scratch.h"
#include "service/integrity/checksum_drive.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

using Answer = std::expected<std::string, std::string>;

constexpr uint64_t kStepBytes = 256_KiB;  // read at a time
constexpr Duration kSweepEvery = 1_s;     // a region that nobody wrote for so long is forgotten
constexpr Duration kRetryEvery = 1_s;     // what cannot be read, or when buffers are out

}  // namespace

task::Task<Result<void>> ChecksumDrive::begin() {
  watch_.look(below());
  Result<Buffer> memory = env_.buffers().allocate(shape_.block_size);
  if (!memory) co_return fail(memory.error());
  bitmap_block_ = std::move(*memory);
  if (is_new_) {
    const uint64_t rest = below().geometry().blocks - kLabelBlocks;
    Result<void> done = co_await begin_label(env_, below(), kChecksumLabel, label_);
    if (done) done = co_await below().discard(Lba(kLabelBlocks), rest);
    if (done) done = co_await below().flush();
    if (done) done = co_await save_marks(RegionSet(shape_.regions()), true);
    if (done) done = co_await finish_label(env_, below(), kChecksumLabel, label_);
    co_return done;
  }
  const Result<void> claimed = co_await claim_label(env_, below(), kChecksumLabel, label_);
  if (!claimed) co_return claimed;
  Result<RegionSet> marked = co_await read_checksum_bitmap(env_, below(), shape_);
  if (!marked) co_return fail(marked.error());
  marked->remove(unsettled_);
  if (!marked->empty()) co_return fail(changed_meanwhile());
  if (!unsettled_.empty()) {
    settler_runs_ = true;
    gate().spawn(settle_all());
  }
  wake_sweeper();
  co_return Result<void>();
}

task::Task<void> ChecksumDrive::close() {
  closing_.request();
  // In good order nothing is in doubt: the next start has nothing to settle.
  const RegionSet touched = intent_.idle();
  (void)touched;  // it is only forgotten that others were touched
  co_await forget_idle();
  co_await ServiceDrive::close();
}

std::vector<Fact> ChecksumDrive::facts() const {
  return {{"blocks", shape_.data_blocks},       {"blocks_corrupt", corrupt_},
          {"blocks_repaired", repaired_},       {"blocks_trusted", trusted_},
          {"regions_marked", intent_.marked()}, {"regions_unsettled", unsettled_.count()},
          {"table_pages", table_.pages()},      {"table_hits", table_.hits()},
          {"table_misses", table_.misses()},    {"scrubbing", is_scrubbing_ ? 1U : 0U},
          {"blocks_scrubbed", scrubbed_}};
}

std::vector<Concern> ChecksumDrive::concerns() const {
  if (corrupt_ == 0) return {};
  return {{.health = Health::kFailing,
           .code = "blocks_corrupt",
           .what = fmt::format("{} times a block was read that no copy has as it was written, and "
                               "such reads fail: tell it 'scrub' to look at all, and write those "
                               "blocks again from a backup",
                               corrupt_)}};
}

std::vector<Job> ChecksumDrive::jobs() const {
  if (!is_scrubbing_) return {};
  return {{.name = "scrub",
           .done = scrubbed_ * geometry_.block_size,
           .total = shape_.data_blocks * geometry_.block_size}};
}

task::Task<Answer> ChecksumDrive::tell(std::vector<std::string> args) {
  if (args.size() != 1 || args[0] != "scrub") {
    co_return std::unexpected("checksum knows one command: scrub, which reads all and repairs");
  }
  if (is_scrubbing_) {
    co_return std::unexpected(
        fmt::format("it is scrubbing, {} of {} blocks", scrubbed_, shape_.data_blocks));
  }
  if (closing_.requested()) co_return std::unexpected("it is being closed");
  is_scrubbing_ = true;
  gate().spawn(scrub());
  co_return fmt::format("scrubbing {} blocks, {} copies of each", shape_.data_blocks,
                        below().geometry().copies);
}

uint64_t ChecksumDrive::step_blocks() const {
  return std::min<uint64_t>(geometry_.transfer_blocks,
                            std::max<uint64_t>(kStepBytes / shape_.block_size, 1));
}

// A change of these failed: their blocks are old or new.
void ChecksumDrive::unsettle(Regions regions) {
  for (uint64_t i = 0; i < regions.count; ++i) {
    unsettled_.add(regions.first + i);
    if (regions.first + i == settling_) settle_again_ = true;
  }
  if (settler_runs_ || closing_.requested()) return;
  settler_runs_ = true;
  gate().spawn(settle_all());
}

task::Task<void> ChecksumDrive::settle_all() {
  while (!unsettled_.empty() && !closing_.requested()) {
    bool all = true;
    for (uint64_t region = unsettled_.next(0); region < unsettled_.size() && !closing_.requested();
         region = unsettled_.next(region + 1)) {
      settling_ = region;
      settle_again_ = false;
      const bool settled = co_await settle(region);
      if (settled && !settle_again_) unsettled_.remove(region);
      all = all && settled;
    }
    settling_ = UINT64_MAX;
    if (all) continue;
    const Result<void> slept = co_await task::sleep_for(env_, kRetryEvery, closing_.token());
    if (!slept) break;
  }
  settler_runs_ = false;
}

// Reads all of it: what does not match is trusted on the way.
task::Task<bool> ChecksumDrive::settle(uint64_t region) {
  const uint64_t end = std::min(shape_.data_blocks, (region + 1) * shape_.region_blocks);
  Result<Scratch> memory = Scratch::make(env_, step_blocks() * shape_.block_size);
  if (!memory) co_return false;
  for (uint64_t at = region * shape_.region_blocks; at < end; at += step_blocks()) {
    const uint64_t count = std::min(step_blocks(), end - at);
    Ranges::Hold hold(ranges_, Ranges::Mode::kShared, at, count, closing_.token());
    Result<void> done = co_await hold;
    if (!done) co_return false;
    const MutableBytes piece = memory->first(count * shape_.block_size);
    const Request request{.priority = Priority::kLow, .lba = Lba(at), .blocks = count};
    done = co_await read_checked(request, {&piece, 1}, closing_.token());
    if (!done) co_return false;
  }
  co_return true;
}

void ChecksumDrive::wake_sweeper() {
  if (sweeper_runs_ || closing_.requested() || intent_.marked() == 0) return;
  sweeper_runs_ = true;
  gate().spawn(sweep());
}

task::Task<void> ChecksumDrive::sweep() {
  while (intent_.marked() > 0) {
    const Result<void> slept = co_await task::sleep_for(env_, kSweepEvery, closing_.token());
    if (!slept) break;
    co_await forget_idle();
  }
  sweeper_runs_ = false;
}

task::Task<void> ChecksumDrive::forget_idle() {
  RegionSet idle = intent_.idle();
  idle.remove(unsettled_);
  if (idle.empty()) co_return;
  const uint64_t losses = losses_.count();
  const Result<void> durable = co_await flush({});
  notice_losses();
  if (!durable || losses != losses_.count()) co_return;
  idle.remove(unsettled_);
  co_await intent_.forget(std::move(idle));
}

// Whether some copy of the block is right; it is in `memory` then. The caller holds the block and
// has its page pinned.
task::Task<bool> ChecksumDrive::find_right(uint64_t block, MutableBytes memory,
                                           task::CancelToken token, bool& all_right) {
  const unsigned copies = below().geometry().copies;
  Result<Scratch> other = Scratch::make(env_, shape_.block_size);
  all_right = other.has_value();
  bool found = false;
  for (unsigned copy = 1; other && copy <= copies; ++copy) {
    const MutableBytes piece = found ? other->bytes() : memory;
    const Request request{.copy = static_cast<uint8_t>(copies > 1 ? copy : 0),
                          .lba = Lba(shape_.data_offset + block),
                          .blocks = 1};
    const Result<void> done = co_await below().submit(request, {&piece, 1}, {}, token);
    if (!done && done.error() == Errc::kUnreachable) continue;  // that one is not there now
    const bool is_good = done && is_right(block, piece);
    found = found || is_good;
    all_right = all_right && is_good;
  }
  co_return found;
}

// Every copy of the block becomes the one that is right.
task::Task<void> ChecksumDrive::repair(uint64_t block) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, block, 1, closing_.token());
  Result<void> done = co_await hold;
  if (!done) co_return;
  Result<Scratch> memory = Scratch::make(env_, shape_.block_size);
  if (!memory) co_return;  // whoever reads it next finds it again
  done = co_await table_.pin(block, 1, closing_.token());
  if (!done) co_return;
  bool all_right = false;
  const bool found = co_await find_right(block, memory->bytes(), closing_.token(), all_right);
  if (found && !all_right) done = co_await claim_.check();
  if (found && !all_right && done) {
    // Without a token: a write that is stopped may leave copies different.
    done = co_await below().write(Lba(shape_.data_offset + block), memory->bytes());
    if (done) ++repaired_;
    env_.trace().record("checksum.repaired", block, done ? 1 : 0);
  }
  table_.unpin(block, 1);
}

// Blocks of one copy that do not match, or cannot be read.
task::Task<std::vector<uint64_t>> ChecksumDrive::find_wrong(Span blocks, uint8_t copy,
                                                            MutableBytes memory) {
  std::vector<uint64_t> wrong;
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, blocks.first, blocks.count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return wrong;
  const Result<void> pinned = co_await table_.pin(blocks.first, blocks.count, closing_.token());
  if (!pinned) co_return wrong;
  const Request request{.priority = Priority::kLow,
                        .copy = copy,
                        .lba = Lba(shape_.data_offset + blocks.first),
                        .blocks = blocks.count};
  const MutableBytes piece = memory.first(blocks.count * shape_.block_size);
  const Result<void> done = co_await below().submit(request, {&piece, 1}, {}, closing_.token());
  const bool is_there = done || done.error() != Errc::kUnreachable;
  for (uint64_t i = 0; is_there && i < blocks.count; ++i) {
    const uint64_t block = blocks.first + i;
    const Bytes bytes = piece.subspan(i * shape_.block_size, shape_.block_size);
    if ((!done || !is_right(block, bytes)) && is_settled(block)) wrong.push_back(block);
  }
  table_.unpin(blocks.first, blocks.count);
  co_return wrong;
}

task::Task<void> ChecksumDrive::scrub() {
  const unsigned copies = below().geometry().copies;
  scrubbed_ = 0;
  while (scrubbed_ < shape_.data_blocks && !closing_.requested()) {
    const Span blocks{scrubbed_, std::min(step_blocks(), shape_.data_blocks - scrubbed_)};
    const uint64_t bytes = blocks.count * shape_.block_size * copies;
    const Time when = scrub_rate_.when(bytes, env_.now());
    Result<void> slept = co_await task::sleep_until(env_, when, closing_.token());
    if (!slept) break;
    Result<Scratch> memory = Scratch::make(env_, blocks.count * shape_.block_size);
    if (!memory) {
      slept = co_await task::sleep_for(env_, kRetryEvery, closing_.token());
      continue;
    }
    scrub_rate_.take(bytes, env_.now());
    for (unsigned copy = 1; copy <= copies; ++copy) {
      const std::vector<uint64_t> wrong =
          co_await find_wrong(blocks, static_cast<uint8_t>(copies > 1 ? copy : 0), memory->bytes());
      for (const uint64_t block : wrong) {
        const uint64_t repaired = repaired_;
        if (copies > 1) co_await repair(block);
        if (repaired_ == repaired) ++corrupt_;
      }
    }
    scrubbed_ += blocks.count;
  }
  is_scrubbing_ = false;
}

}  // namespace cairn::drive
