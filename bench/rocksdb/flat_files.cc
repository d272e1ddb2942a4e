// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/flat_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn::bench {

Extents::Extents(uint64_t count) {
  // Taken from the end: the first ones first.
  for (uint64_t i = count; i > 0; --i) free_.push_back(static_cast<uint32_t>(i - 1));
}

Result<uint32_t> Extents::take() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) return fail(Errc::kNoSpace, "the drive under the files is full");
  const uint32_t extent = free_.back();
  free_.pop_back();
  return extent;
}

void Extents::give(std::span<const uint32_t> extents) {
  const std::scoped_lock lock(mutex_);
  free_.insert(free_.end(), extents.begin(), extents.end());
}

size_t Extents::free() const {
  const std::scoped_lock lock(mutex_);
  return free_.size();
}

FlatFile::FlatFile(BlockStore& store, std::shared_ptr<Extents> extents)
    : store_(store), extents_(std::move(extents)) {}

FlatFile::~FlatFile() { extents_->give(mine_); }

uint64_t FlatFile::size() const {
  const std::shared_lock lock(mutex_);
  return written_ + tail_.size();
}

void FlatFile::plan(bool writes, uint64_t offset, MutableBytes bytes,
                    std::vector<Transfer>& into) const {
  const uint64_t block_size = store_.block_size();
  while (!bytes.empty()) {
    const uint64_t within = offset % Extents::kSize;
    const uint64_t length =
        std::min<uint64_t>({bytes.size(), Extents::kSize - within, store_.transfer_max()});
    const uint64_t first = mine_[offset / Extents::kSize] * (Extents::kSize / block_size);
    into.push_back(
        {.writes = writes, .block = first + within / block_size, .bytes = bytes.first(length)});
    bytes = bytes.subspan(length);
    offset += length;
  }
}

Result<void> FlatFile::append(Bytes bytes) {
  const std::unique_lock lock(mutex_);
  const size_t before = tail_.size();
  tail_.insert(tail_.end(), bytes.begin(), bytes.end());
  if (tail_.size() < kGathered) return {};
  Result<void> written = write_tail(false);
  if (!written) tail_.resize(before);
  return written;
}

// Whole blocks leave the tail for the drive. A part of a block is written too if asked for, and
// stays: the block is written again when it is whole.
Result<void> FlatFile::write_tail(bool with_part) {
  const size_t block_size = store_.block_size();
  const size_t whole = align_down(tail_.size(), block_size);
  const size_t length = with_part ? align_up(tail_.size(), block_size) : whole;
  if (length == 0) return {};
  while (mine_.size() * Extents::kSize < written_ + length) {
    const Result<uint32_t> extent = extents_->take();
    if (!extent) return fail(extent.error());
    mine_.push_back(*extent);
  }
  const size_t used = tail_.size();
  tail_.resize(std::max(length, used));
  std::vector<Transfer> transfers;
  plan(true, written_, MutableBytes(tail_).first(length), transfers);
  const Result<void> moved = store_.transfer(transfers);
  tail_.resize(used);
  if (!moved) return moved;
  written_ += whole;
  tail_.erase(tail_.begin(), tail_.begin() + static_cast<ptrdiff_t>(whole));
  return {};
}

Result<void> FlatFile::sync() {
  const std::unique_lock lock(mutex_);
  if (Result<void> written = write_tail(true); !written) return written;
  return store_.flush();
}

Result<void> FlatFile::truncate(uint64_t size) {
  const std::unique_lock lock(mutex_);
  if (size > written_ + tail_.size()) {
    return fail(Errc::kInvalid, "a file is cut beyond its end");
  }
  if (size < written_) {
    // The block that is cut becomes the tail again.
    const uint64_t block_size = store_.block_size();
    const uint64_t kept = align_down(size, block_size);
    std::vector<std::byte> block(size == kept ? 0 : block_size);
    std::vector<Transfer> transfers;
    plan(false, kept, block, transfers);
    if (Result<void> moved = store_.transfer(transfers); !moved) return moved;
    written_ = kept;
    tail_ = std::move(block);
  }
  tail_.resize(size - written_);
  return {};
}

Result<void> FlatFile::read(std::span<ReadPart> parts) const {
  const std::shared_lock lock(mutex_);
  const uint64_t block_size = store_.block_size();
  const uint64_t end = written_ + tail_.size();
  // Parts rarely begin and end with blocks, so blocks come into memory of ours first.
  struct Bounce {
    ReadPart* part;
    uint64_t from;
    std::vector<std::byte> blocks;
  };
  std::vector<Bounce> bounces;
  bounces.reserve(parts.size());
  std::vector<Transfer> transfers;
  for (ReadPart& part : parts) {
    const uint64_t last = std::min(part.offset + part.into.size(), end);
    part.got = last > part.offset ? last - part.offset : 0;
    const uint64_t on_drive = std::min(last, written_);
    if (part.got == 0 || part.offset >= on_drive) continue;
    const uint64_t from = align_down(part.offset, block_size);
    bounces.push_back({&part, from, {}});
    bounces.back().blocks.resize(align_up(on_drive, block_size) - from);
    plan(false, from, bounces.back().blocks, transfers);
  }
  if (Result<void> moved = store_.transfer(transfers); !moved) return moved;
  for (const Bounce& bounce : bounces) {
    ReadPart& part = *bounce.part;
    const uint64_t skipped = part.offset - bounce.from;
    const size_t length = std::min<uint64_t>(part.got, bounce.blocks.size() - skipped);
    std::memcpy(part.into.data(), bounce.blocks.data() + skipped, length);
  }
  for (const ReadPart& part : parts) {
    const uint64_t last = part.offset + part.got;
    if (last <= written_) continue;
    const uint64_t from = std::max(part.offset, written_);
    std::memcpy(part.into.data() + (from - part.offset), tail_.data() + (from - written_),
                last - from);
  }
  return {};
}

FlatFiles::FlatFiles(BlockStore& store)
    : store_(store),
      extents_(std::make_shared<Extents>(store.blocks() * store.block_size() / Extents::kSize)) {}

std::shared_ptr<FlatFile> FlatFiles::create(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  return files_[name] = std::make_shared<FlatFile>(store_, extents_);
}

Result<std::shared_ptr<FlatFile>> FlatFiles::open(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(name);
  if (found == files_.end()) return fail(Errc::kNotFound, "no such file on the drive");
  return found->second;
}

Result<void> FlatFiles::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  if (files_.erase(name) == 0) return fail(Errc::kNotFound, "no such file on the drive");
  return {};
}

Result<void> FlatFiles::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(from);
  if (found == files_.end()) return fail(Errc::kNotFound, "no such file on the drive");
  std::shared_ptr<FlatFile> file = std::move(found->second);
  files_.erase(found);
  files_[to] = std::move(file);
  return {};
}

bool FlatFiles::exists(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  return files_.contains(name);
}

std::vector<std::string> FlatFiles::list(const std::string& folder) const {
  const std::scoped_lock lock(mutex_);
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  std::vector<std::string> names;
  for (auto at = files_.lower_bound(prefix); at != files_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    std::string name = at->first.substr(prefix.size());
    name.resize(std::min(name.find('/'), name.size()));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace cairn::bench
