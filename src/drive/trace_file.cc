// SPDX-License-Identifier: Apache-2.0
#include "drive/trace_file.h"

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
        {.path = name, .direct = false, .read_only = true, .block_size = 512, .lock = false});
    if (there || there.error() != Errc::kNotFound) continue;
    Result<std::unique_ptr<env::Disk>> made = env_.open_disk(
        {.path = name, .size = kChunk, .create = true, .direct = false, .block_size = 512});
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
  if (length == 0 && write_filled()) {
    length = trace::write_line(line, chunks_[filling_].bytes().subspan(used_));
  }
  used_ += length;
  ++(length == 0 ? counts_.dropped : counts_.lines);
}

// Whether there is an empty chunk now.
bool TraceFile::write_filled() {
  if (is_writing_ || !is_open_) return false;
  std::ranges::fill(chunks_[filling_].bytes().subspan(used_), std::byte{'\n'});
  is_writing_ = true;
  written_.reset();
  gate_.spawn(write(std::exchange(filling_, 1 - filling_)));
  used_ = 0;
  return true;
}

task::Task<void> TraceFile::write(size_t chunk) {
  Result<void> done;
  if (offset_ + kChunk > disk_->size()) done = co_await disk_->resize(offset_ + kChunk);
  if (done) done = co_await disk_->write(offset_, chunks_[chunk].bytes());
  offset_ += kChunk;
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
    if (!is_writing_) write_filled();
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
