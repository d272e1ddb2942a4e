// SPDX-License-Identifier: Apache-2.0
#include "drive/blank.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/units.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kEndBytes = 1_MiB;       // of the beginning and of the end
constexpr uint64_t kReadAllBytes = 16_MiB;  // what is no hole is read as a whole up to here
constexpr size_t kExtentsMax = 1024;        // then the rest counts as one
constexpr uint64_t kSamples = 512;          // blocks, spread over what is no hole
constexpr size_t kAtOnce = 16;              // reads of samples in flight
constexpr Duration kSamplesTime = 2_s;      // a slow drive is not read for longer
constexpr uint64_t kStepBytes = 256_KiB;    // read at a time
constexpr const char* kNotBlank =
    "a drive holds something else, that would be lost; say --format to take it nevertheless; drive";

struct Span {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Looks at one drive.
class Search {
 public:
  Search(env::Env& env, Drive& drive, task::CancelToken token)
      : env_(env), drive_(drive), shape_(drive.geometry()), token_(token) {}

  task::Task<Result<std::optional<Remains>>> run();

 private:
  void map();
  task::Task<Result<void>> read_ends(MutableBytes head, MutableBytes tail);
  task::Task<Result<void>> read_blocks(Span blocks, MutableBytes into);
  task::Task<Result<void>> read_all(Span blocks);
  task::Task<Result<void>> read_samples();
  task::Task<Result<void>> read_one(uint64_t block, MutableBytes into);
  uint64_t block_of(uint64_t nth) const;
  void see(Bytes bytes, uint64_t block);

  env::Env& env_;
  Drive& drive_;
  const Geometry shape_;
  const task::CancelToken token_;
  std::vector<Span> full_;  // no holes, or not known
  uint64_t full_blocks_ = 0;
  std::optional<Remains> found_;
};

// Where there may be something.
void Search::map() {
  for (uint64_t at = 0; at < shape_.blocks;) {
    const uint64_t left = shape_.blocks - at;
    Extent extent{.blocks = left};
    if (full_.size() < kExtentsMax) extent = drive_.extent_at(Lba(at), left);
    extent.blocks = std::clamp<uint64_t>(extent.blocks, 1, left);
    if (!extent.is_hole) {
      full_.push_back({at, extent.blocks});
      full_blocks_ += extent.blocks;
    }
    at += extent.blocks;
  }
}

void Search::see(Bytes bytes, uint64_t block) {
  if (found_ || is_zero(bytes)) return;
  const auto at = std::ranges::find_if(bytes, [](std::byte byte) { return byte != std::byte{0}; });
  const auto offset = static_cast<uint64_t>(at - bytes.begin());
  found_ = Remains{"data", block * shape_.block_size + offset};
}

task::Task<Result<void>> Search::read_blocks(Span blocks, MutableBytes into) {
  const uint64_t step = std::min<uint64_t>(shape_.transfer_blocks,
                                           std::max<uint64_t>(kStepBytes / shape_.block_size, 1));
  for (uint64_t done = 0; done < blocks.count; done += step) {
    const uint64_t count = std::min(step, blocks.count - done);
    const Result<void> read = co_await drive_.read(
        Lba(blocks.first + done), into.subspan(done * shape_.block_size, count * shape_.block_size),
        token_);
    if (!read) co_return read;
  }
  co_return Result<void>();
}

task::Task<Result<void>> Search::read_all(Span blocks) {
  const uint64_t step = std::max<uint64_t>(kStepBytes / shape_.block_size, 1);
  Result<Scratch> memory = Scratch::make(env_, step * shape_.block_size);
  if (!memory) co_return fail(memory.error());
  for (uint64_t done = 0; done < blocks.count && !found_; done += step) {
    const Span part{blocks.first + done, std::min(step, blocks.count - done)};
    const MutableBytes into = memory->first(part.count * shape_.block_size);
    const Result<void> read = co_await read_blocks(part, into);
    if (!read) co_return read;
    see(into, part.first);
  }
  co_return Result<void>();
}

task::Task<Result<void>> Search::read_one(uint64_t block, MutableBytes into) {
  const Result<void> read = co_await drive_.read(Lba(block), into, token_);
  if (read) see(into, block);
  co_return read;
}

// Of all blocks that are no holes, the nth.
uint64_t Search::block_of(uint64_t nth) const {
  for (const Span& one : full_) {
    if (nth < one.count) return one.first + nth;
    nth -= one.count;
  }
  return full_.back().first;
}

// The beginning of each extent, where a file of something begins; then one block at random of each
// of kSamples equal parts, in an order that has seen all of the drive early.
task::Task<Result<void>> Search::read_samples() {
  Result<Scratch> memory = Scratch::make(env_, kAtOnce * shape_.block_size);
  if (!memory) co_return fail(memory.error());
  const Time end = env_.now() + kSamplesTime;
  std::vector<uint64_t> blocks;
  for (const Span& one : full_) blocks.push_back(one.first);
  const uint64_t part = std::max<uint64_t>(full_blocks_ / kSamples, 1);
  for (uint64_t i = 0; i < kSamples; ++i) {
    uint64_t reversed = 0;
    for (uint64_t bit = 1; bit < kSamples; bit *= 2) {
      reversed = reversed * 2 + ((i & bit) != 0 ? 1 : 0);
    }
    const uint64_t nth = reversed * part + env_.rng().next() % part;
    if (nth < full_blocks_) blocks.push_back(block_of(nth));
  }
  for (size_t done = 0; done < blocks.size() && !found_ && env_.now() < end; done += kAtOnce) {
    std::vector<task::Task<Result<void>>> reading;
    for (size_t i = 0; i < std::min(kAtOnce, blocks.size() - done); ++i) {
      reading.push_back(
          read_one(blocks[done + i], memory->subspan(i * shape_.block_size, shape_.block_size)));
    }
    const std::vector<Result<void>> read = co_await task::when_all(std::move(reading));
    const auto failed = std::ranges::find_if(read, [](const auto& one) { return !one; });
    if (failed != read.end()) co_return *failed;
  }
  co_return Result<void>();
}

task::Task<Result<void>> Search::read_ends(MutableBytes head, MutableBytes tail) {
  const uint64_t count = head.size() / shape_.block_size;
  Result<void> read = co_await read_blocks({0, count}, head);
  if (read) read = co_await read_blocks({shape_.blocks - count, count}, tail);
  if (!read) co_return read;
  found_ = find_signature(head, tail, shape_.bytes());
  see(head, 0);
  see(tail, shape_.blocks - count);
  co_return read;
}

task::Task<Result<std::optional<Remains>>> Search::run() {
  map();
  if (full_.empty()) co_return std::optional<Remains>();
  const uint64_t ends =
      std::min<uint64_t>(shape_.blocks, std::max<uint64_t>(kEndBytes / shape_.block_size, 1));
  Result<Scratch> head = Scratch::make(env_, ends * shape_.block_size);
  if (!head) co_return fail(head.error());
  Result<Scratch> tail = Scratch::make(env_, ends * shape_.block_size);
  if (!tail) co_return fail(tail.error());
  Result<void> read = co_await read_ends(head->bytes(), tail->bytes());
  if (full_blocks_ <= kReadAllBytes / shape_.block_size) {
    for (size_t i = 0; i < full_.size() && read && !found_; ++i) {
      read = co_await read_all(full_[i]);
    }
  } else if (read && !found_) {
    read = co_await read_samples();
  }
  if (!read) co_return fail(read.error());
  co_return found_;
}

}  // namespace

task::Task<Result<std::optional<Remains>>> find_remains(env::Env& env, Drive& drive,
                                                        task::CancelToken token) {
  Search search(env, drive, token);
  Result<std::optional<Remains>> found = co_await search.run();
  co_return found;
}

Error not_blank(int32_t number) { return {Errc::kInvalid, kNotBlank, number}; }
bool is_not_blank(const Error& error) { return error.what() == kNotBlank; }

task::Task<Result<void>> check_blank(env::Env& env, Drive& drive, int32_t number,
                                     task::CancelToken token) {
  const Result<std::optional<Remains>> found = co_await find_remains(env, drive, token);
  if (!found) co_return fail(found.error());
  if (*found) co_return fail(not_blank(number));
  co_return Result<void>();
}

}  // namespace cairn::drive
