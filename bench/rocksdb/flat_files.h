// SPDX-License-Identifier: Apache-2.0
// FlatFiles: named files in extents of a BlockStore, as much of a file system as RocksDB asks for.
//
// Bytes are on the drive, names and extents in memory: files live as long as this object, however
// often they are closed and opened. A file grows at its end only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "bench/rocksdb/block_store.h"

namespace cairn::bench {

// Which parts of the drive are taken. From any thread.
class Extents {
 public:
  static constexpr uint64_t kSize = 1_MiB;
  explicit Extents(uint64_t count);
  // kNoSpace: none is left.
  Result<uint32_t> take();
  void give(std::span<const uint32_t> extents);
  size_t free() const;

 private:
  mutable std::mutex mutex_;
  std::vector<uint32_t> free_;
};

struct ReadPart {
  uint64_t offset = 0;
  MutableBytes into;
  size_t got = 0;  // less than asked for at the end of the file
};

// From any thread: one that appends or many that read at a time. Its extents are free again when
// the last who holds it is gone.
class FlatFile {
 public:
  FlatFile(BlockStore& store, std::shared_ptr<Extents> extents);
  ~FlatFile();
  FlatFile(const FlatFile&) = delete;
  FlatFile& operator=(const FlatFile&) = delete;

  // Gathered in memory and written in large pieces; reads see it at once. kNoSpace; the drive's.
  // After an error the file is as long as before.
  Result<void> append(Bytes bytes);
  // All parts at once.
  Result<void> read(std::span<ReadPart> parts) const;
  // All of it is on the drive and survives a crash of the box.
  Result<void> sync();
  // Cuts it; beyond its end: kInvalid.
  Result<void> truncate(uint64_t size);
  uint64_t size() const;

 private:
  static constexpr size_t kGathered = 256_KiB;
  // Transfers between `bytes` and the file's blocks from `offset`, both whole blocks.
  void plan(bool writes, uint64_t offset, MutableBytes bytes, std::vector<Transfer>& into) const;
  Result<void> write_tail(bool with_part);

  BlockStore& store_;
  const std::shared_ptr<Extents> extents_;
  mutable std::shared_mutex mutex_;
  std::vector<uint32_t> mine_;
  uint64_t written_ = 0;         // whole blocks on the drive
  std::vector<std::byte> tail_;  // what follows them
};

// From any thread.
class FlatFiles {
 public:
  // `store` outlives it and its files.
  explicit FlatFiles(BlockStore& store);

  // Empty, in place of one that has this name.
  std::shared_ptr<FlatFile> create(const std::string& name);
  // kNotFound.
  Result<std::shared_ptr<FlatFile>> open(const std::string& name) const;
  Result<void> remove(const std::string& name);
  // Replaces one that has the new name.
  Result<void> rename(const std::string& from, const std::string& to);
  bool exists(const std::string& name) const;
  // The names directly below a folder, without it; folders among them.
  std::vector<std::string> list(const std::string& folder) const;
  size_t free_extents() const { return extents_->free(); }

 private:
  BlockStore& store_;
  const std::shared_ptr<Extents> extents_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<FlatFile>> files_;
};

}  // namespace cairn::bench
