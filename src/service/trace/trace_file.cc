// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::drive {

namespace {

constexpr int kFilesMax = 10'000;

}  // namespace

Result<void> TraceFile::create() {
  for (int number = 0; number < kFilesMax; ++number) {
    const std::string name = number == 0 ? path_ : fmt::format("{}.{}", path_, number);
    const Result<std::unique_ptr<env::Disk>> there = env_.open_disk(
        {.path = name, .direct = false, .read_only = true, .block_size = kBlock, .lock = false});
    if (there || there.error() != Errc::kNotFound) continue;
    Result<std::unique_ptr<env::Disk>> made = env_.open_disk(
        {.path = name, .size = kChunk, .create = true, .direct = false, .block_size = kBlock});
    if (!made) return fail(made.error());
    disk_ = std::move(*made);
    name_ = name;
    return {};
  }
  return fail(Errc::kExists, "there are too many traces of this name, or they cannot be read");
}

task::Task<Result<void>> TraceFile::begin() {
  if (is_open_) co_return Result<void>();
  for (Buffer& chunk : chunks_) {
    if (!chunk.empty()) continue;
    Result<Buffer> made = env_.buffers().allocate(kChunk);
    if (!made) {
      ++counts_.errors;
      co_return fail(made.error());
    }
    chunk = std::move(*made);
  }
  if (const Result<void> created = create(); !created) {
    ++counts_.errors;
    co_return created;
  }
  failed_ = {};
  offset_ = 0;
  used_ = trace::kCairnHeading.size();
  std::memcpy(chunks_[filling_].data(), trace::kCairnHeading.data(), used_);
  is_open_ = true;
  co_return Result<void>();
}

void TraceFile::add(const trace::CairnLine& line) {
  if (!is_open_) return;
  size_t length = trace::write_line(line, chunks_[filling_].bytes().subspan(used_));
  if (length == 0 && write_filled(Position::kMiddle)) {
    length = trace::write_line(line, chunks_[filling_].bytes().subspan(used_));
  }
  used_ += length;
  ++(length == 0 ? counts_.dropped : counts_.lines);
}

// Whether there is an empty chunk now.
bool TraceFile::write_filled(Position position) {
  if (is_writing_ || !is_open_) return false;
  const size_t length = align_up(used_, kBlock);
  // What a block has left is one blank line.
  const MutableBytes left = chunks_[filling_].bytes().first(length).subspan(used_);
  std::ranges::fill(left, std::byte{' '});
  if (!left.empty()) left.back() = std::byte{'\n'};
  is_writing_ = true;
  written_.reset();
  const Bytes lines = chunks_[filling_].bytes().first(length);
  filling_ = 1 - filling_;
  used_ = 0;
  gate_.spawn(write(lines, position));
  return true;
}

task::Task<void> TraceFile::write(Bytes lines, Position position) {
  Result<void> done;
  const uint64_t end = offset_ + lines.size();
  if (end > disk_->size()) done = co_await disk_->resize(end);
  if (done) done = co_await disk_->write(offset_, lines);
  if (done && position == Position::kLast && end < disk_->size())
    done = co_await disk_->resize(end);
  offset_ = end;
  if (!done) {
    ++counts_.errors;
    failed_ = done;
    is_open_ = false;
  }
  is_writing_ = false;
  written_.set();
}

task::Task<Result<void>> TraceFile::end() {
  while (is_writing_ || (is_open_ && used_ > 0)) {
    if (!is_writing_) write_filled(Position::kLast);
    if (!is_writing_) continue;
    const Result<void> waited = co_await written_.wait();
    if (!waited) co_return waited;
  }
  is_open_ = false;
  disk_.reset();
  co_return std::exchange(failed_, {});
}

task::Task<void> TraceFile::close() {
  [[maybe_unused]] const Result<void> ended = co_await end();  // counted
  co_await gate_.close();
}

}  // namespace cairn::drive
