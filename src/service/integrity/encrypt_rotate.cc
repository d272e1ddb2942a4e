// SPDX-License-Identifier: Apache-2.0
// How encrypt changes its key while it is used.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "drive/copy_blocks.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "service/integrity/encrypt_drive.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

using Answer = std::expected<std::string, std::string>;

constexpr Duration kRetryEvery = 1_s;

}  // namespace

task::Task<Result<void>> EncryptDrive::begin() {
  Result<void> done;
  if (label_.generation == 0) {
    done = co_await begin_label(env_, below(), kEncryptLabel, label_);
    // Whatever was there was not written with this key.
    if (done) {
      done = co_await below().discard(Lba(kLabelBlocks), label_.blocks - kLabelBlocks);
    }
    if (done) done = co_await below().flush();
    label_.body = encode_encrypt_body(state_);
    if (done) done = co_await finish_label(env_, below(), kEncryptLabel, label_);
  } else {
    done = co_await claim_label(env_, below(), kEncryptLabel, label_);
  }
  if (!done || !state_.is_rotating) co_return done;
  if (state_.has_journal) {
    // What the medium refuses now it may take later: until then these blocks fail, no others.
    stuck_blocks_ = state_.window_size();
    Result<Scratch> memory = Scratch::make(env_, state_.window_blocks() * geometry_.block_size);
    rotation_ = memory ? Result<void>() : fail(memory.error());
    if (memory) rotation_ = co_await rotate_window(memory->bytes());
  }
  gate().spawn(rotate());
  co_return done;
}

task::Task<void> EncryptDrive::close() {
  closing_.request();
  co_await ServiceDrive::close();
}

std::vector<Fact> EncryptDrive::facts() const {
  return {{"rotating", state_.is_rotating ? 1U : 0U},
          {"blocks", state_.data_blocks},
          {"blocks_rotated", state_.is_rotating ? state_.rotated : state_.data_blocks},
          {"window_refused", stuck_blocks_ > 0 && !rotation_ ? 1U : 0U}};
}

std::vector<Concern> EncryptDrive::concerns() const {
  if (rotation_) return {};
  const bool is_full = rotation_.error() == Errc::kNoSpace;
  const bool is_stuck = stuck_blocks_ > 0;
  return {{.health = is_stuck ? Health::kFailing : Health::kDegraded,
           .code = is_full ? "rotation_full" : "rotation_stopped",
           .what = fmt::format("the change of its key stopped at block {} of {}: {}; {}{}it is "
                               "tried again every second",
                               state_.rotated, state_.data_blocks, rotation_.error().text(),
                               is_stuck ? "the next blocks cannot be used meanwhile; " : "",
                               is_full ? "make room below; " : "")}};
}

std::vector<Job> EncryptDrive::jobs() const {
  if (!state_.is_rotating) return {};
  return {{.name = "rotation",
           .done = state_.rotated * geometry_.block_size,
           .total = state_.data_blocks * geometry_.block_size}};
}

task::Task<Answer> EncryptDrive::tell(std::vector<std::string> args) {
  if (args.size() == 2 && args[0] == "rotate") {
    co_return co_await begin_rotation(std::move(args[1]));
  }
  co_return std::unexpected("encrypt knows one command: rotate FILE, where FILE has the new key");
}

task::Task<Answer> EncryptDrive::begin_rotation(std::string path) {
  if (state_.is_rotating || is_starting_) {
    co_return std::unexpected(fmt::format("a rotation is under way, {} of {} blocks: wait for it",
                                          state_.rotated, state_.data_blocks));
  }
  const std::expected<FileContent, std::string> content = files_.read_file(path);
  if (!content) co_return std::unexpected(content.error());
  const std::optional<DriveKey> parsed = parse_drive_key(as_text(content->bytes()));
  if (!parsed) {
    co_return std::unexpected(
        fmt::format("'{}' holds no key: it is 64 bytes in base64; 'cairn key new drive --output "
                    "FILE' makes one",
                    path));
  }
  EncryptKey key(*parsed, label_);
  if (key.check == state_.key) {
    co_return std::unexpected(fmt::format("'{}' holds the key that is in use", path));
  }
  EncryptState next = state_;
  next.old_key = state_.key;
  next.key = key.check;
  next.is_rotating = true;
  next.rotated = 0;
  is_starting_ = true;
  label_.body = encode_encrypt_body(next);
  const Result<void> saved = co_await write_label(env_, below(), kEncryptLabel, label_);
  is_starting_ = false;
  if (!saved) {
    co_return std::unexpected(
        fmt::format("the label cannot be written ({}): say it again, and keep both keys until it "
                    "succeeded",
                    saved.error().text()));
  }
  // Requests in flight have encrypted with this key, which is the old one from here on.
  old_key_ = std::exchange(key_, std::move(key));
  state_ = next;
  if (!closing_.requested()) gate().spawn(rotate());
  co_return fmt::format(
      "rotating {} blocks to the key in '{}'; until it is done a restart needs key={}, "
      "old_key=the old file",
      state_.data_blocks, path, path);
}

// On failure either of the labels may be in force, so what they differ about is stuck before. A
// window that is in the journal stays so.
task::Task<Result<void>> EncryptDrive::save(EncryptState next) {
  label_.body = encode_encrypt_body(next);
  const Result<void> saved = co_await write_label(env_, below(), kEncryptLabel, label_);
  if (!saved) co_return saved;
  state_ = next;
  stuck_blocks_ = state_.has_journal ? state_.window_size() : 0;
  co_return saved;
}

task::Task<void> EncryptDrive::rotate() {
  while (state_.is_rotating && !closing_.requested()) {
    Result<void> done;
    if (state_.rotated == state_.data_blocks) {
      EncryptState next = state_;
      next.is_rotating = false;
      next.old_key = {};
      done = co_await save(next);
      if (done) old_key_.reset();
    } else {
      done = co_await rotate_some();
    }
    if (closing_.requested()) break;
    rotation_ = done;
    if (!done) {
      const Result<void> slept = co_await task::sleep_for(env_, kRetryEvery, closing_.token());
      if (!slept) break;
    }
  }
}

task::Task<Result<void>> EncryptDrive::rotate_some() {
  // After a loss a hole may be one until the next crash only: it is written, as zeroes.
  if (!state_.has_journal && losses_.count() == 0 && holes_ahead() > 0) {
    co_return co_await rotate_holes();
  }
  const uint64_t window_bytes = state_.window_blocks() * geometry_.block_size;
  const Time when = rotation_rate_.when(window_bytes, env_.now());
  Result<void> done = co_await task::sleep_until(env_, when, closing_.token());
  if (!done) co_return done;
  rotation_rate_.take(window_bytes, env_.now());
  Result<Scratch> memory = Scratch::make(env_, window_bytes);
  if (!memory) co_return fail(memory.error());
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, state_.rotated, state_.window_blocks(),
                    closing_.token());
  done = co_await hold;
  if (!done) co_return done;
  co_return co_await rotate_window(memory->bytes());
}

// Blocks in whole windows from state_.rotated on that are holes below.
uint64_t EncryptDrive::holes_ahead() const {
  const uint64_t left = state_.data_blocks - state_.rotated;
  const uint64_t holes = holes_at(below(), state_.data_offset + state_.rotated, left);
  return holes == left ? holes : align_down(holes, state_.window_blocks());
}

// A hole is zeroes with any key: only the label has to say that it has the new one, once no power
// loss can undo the discard that made it and bring old ciphertext back.
task::Task<Result<void>> EncryptDrive::rotate_holes() {
  const uint64_t count = holes_ahead();
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, state_.rotated, count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  EncryptState next = state_;
  next.rotated += std::min(count, holes_ahead());
  if (next.rotated == state_.rotated) co_return Result<void>();
  const Result<void> flushed = co_await below().flush();
  losses_.flushed(flushed);
  if (!flushed) co_return flushed;
  stuck_blocks_ = std::max(stuck_blocks_, next.rotated - state_.rotated);
  co_return co_await save(next);
}

// The window from state_.rotated on, which the caller has alone. After a failure it is tried again
// from the start, or from the journal; what is stuck was not used meanwhile.
task::Task<Result<void>> EncryptDrive::rotate_window(MutableBytes memory) {
  memory = memory.first(state_.window_size() * geometry_.block_size);
  Result<void> done;
  if (state_.has_journal) {
    done = co_await move(Request::Kind::kRead, state_.journal_offset(), memory);
    if (done && crc32c(memory) != state_.journal_checksum) {
      done = fail(Errc::kCorrupt, "the journal of a rotation is damaged");
    }
  } else {
    done = co_await move(Request::Kind::kRead, state_.data_offset + state_.rotated, memory);
    if (done && !is_zero(memory)) done = co_await fill_journal(memory);
  }
  if (!done) co_return done;
  stuck_blocks_ = std::max(stuck_blocks_, state_.window_size());
  for (uint64_t i = 0; i < state_.window_size(); ++i) {
    const MutableBytes block = memory.subspan(i * geometry_.block_size, geometry_.block_size);
    if (is_zero(block)) continue;
    old_key_->cipher.decrypt(state_.rotated + i, block, block);
    key_.cipher.encrypt(state_.rotated + i, block, block);
  }
  done = co_await write_window(memory);
  if (!done) co_return done;
  EncryptState next = state_;
  next.rotated += state_.window_size();
  next.has_journal = false;
  next.journal_checksum = 0;
  co_return co_await save(next);
}

task::Task<Result<void>> EncryptDrive::fill_journal(MutableBytes memory) {
  const Result<void> done = co_await move(Request::Kind::kWrite, state_.journal_offset(), memory);
  if (!done) co_return done;
  EncryptState next = state_;
  next.has_journal = true;
  next.journal_checksum = crc32c(memory);
  stuck_blocks_ = std::max(stuck_blocks_, state_.window_size());
  co_return co_await save(next);
}

// In place, durably; zeroes too: they may be of a discard that a power loss undid, and the blocks
// hold old ciphertext again. They take no space.
task::Task<Result<void>> EncryptDrive::write_window(MutableBytes memory) {
  uint64_t block = state_.data_offset + state_.rotated;
  while (!memory.empty()) {
    const uint64_t count =
        std::min<uint64_t>(geometry_.transfer_blocks, memory.size() / geometry_.block_size);
    const MutableBytes piece = memory.first(count * geometry_.block_size);
    const Request request{.kind = Request::Kind::kWrite,
                          .durable = true,
                          .priority = Priority::kLow,
                          .lba = Lba(block),
                          .blocks = count};
    const Result<void> done = co_await write_copy(below(), request, piece);
    if (!done) co_return done;
    memory = memory.subspan(piece.size());
    block += count;
  }
  co_return Result<void>();
}

// Blocks of the drive below, as many as fit at a time. What is written is durable.
task::Task<Result<void>> EncryptDrive::move(Request::Kind kind, uint64_t block,
                                            MutableBytes memory) {
  const uint64_t max = geometry_.transfer_blocks;
  while (!memory.empty()) {
    const uint64_t count = std::min(max, memory.size() / geometry_.block_size);
    const MutableBytes piece = memory.first(count * geometry_.block_size);
    const Request request{.kind = kind,
                          .durable = kind == Request::Kind::kWrite,
                          .priority = Priority::kLow,
                          .lba = Lba(block),
                          .blocks = count};
    const Result<void> done = co_await below().submit(request, {&piece, 1});
    if (!done) co_return done;
    memory = memory.subspan(piece.size());
    block += count;
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
