// SPDX-License-Identifier: Apache-2.0
// Disks: a file or device of fixed blocks, or its simulation. Contract: docs/env.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "task/operation.h"

namespace cairn::env {

class Disk;

class DiskOp final : public task::Operation<void> {
 public:
  enum class Kind : uint8_t { kRead, kWrite, kFlush, kDiscard, kWriteZeroes, kResize };

  struct Request {
    Kind kind;
    bool durable = false;  // kWrite, kWriteZeroes: on the medium when complete (FUA)
    uint64_t offset = 0;
    uint64_t length = 0;
  };

  DiskOp(Disk& disk, Request request, task::CancelToken token)
      : Operation(token), disk_(disk), request_(request) {}
  DiskOp(Disk& disk, Request request, MutableBytes piece, task::CancelToken token)
      : Operation(token), disk_(disk), request_(request), piece_(piece), into_(&piece_, 1) {}
  DiskOp(Disk& disk, Request request, std::span<const MutableBytes> into, task::CancelToken token)
      : Operation(token), disk_(disk), request_(request), into_(into) {}

  const Request& request() const { return request_; }
  // Where a read goes. A write's pieces have the same shape and are only read from.
  std::span<const MutableBytes> into() const { return into_; }
  using Operation::cancelled;

  // The back end's own room while it has the operation.
  static constexpr size_t kScratchSize = 96;
  alignas(16) std::byte scratch[kScratchSize];

 private:
  void start() override;
  void cancel() override;
  Disk& disk_;
  Request request_;
  MutableBytes piece_;
  std::span<const MutableBytes> into_;
};

// Any number of operations at once, on the core that opened it. Offsets, lengths and memory are
// multiples of block_size(); kInvalid otherwise, or when past the end. No order between operations
// in flight together; blocks that two of them write hold either, block by block. A completed read
// sees every write that completed before it started. Pieces are lent until completion. kCancelled,
// kTimedOut: by the token, for every operation; any subset of the blocks may have changed.
// Destroyed when no operation is in flight.
class Disk {
 public:
  virtual ~Disk() = default;

  virtual uint64_t size() const = 0;
  // The alignment of offsets, lengths and memory; a power of two. A block is written whole or not
  // at all when power fails; larger writes may be torn between blocks.
  virtual uint32_t block_size() const = 0;

  // A part of the disk.
  struct Extent {
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  // The first blocks from `offset` on that may hold something else than zeroes; none left: a length
  // of 0. Asks the medium where its holes are, and may wait for that: not for the data path.
  virtual Extent next_data(uint64_t offset) const {
    return {.offset = offset, .length = size() - offset};
  }

  // All bytes, or an error and undefined memory. kIo: the medium failed, or the file has shrunk.
  DiskOp read(uint64_t offset, MutableBytes into, task::CancelToken token = {}) {
    return {*this, {DiskOp::Kind::kRead, false, offset, into.size()}, into, token};
  }
  DiskOp read(uint64_t offset, std::span<const MutableBytes> into, task::CancelToken token = {}) {
    return {*this, {DiskOp::Kind::kRead, false, offset, total_size(into)}, into, token};
  }

  struct WriteOptions {
    bool durable = false;
  };
  // All bytes are readable afterwards; they survive a crash after the next flush(), or at once when
  // durable. kDenied: the disk was opened read-only, as for all that changes it. kNoSpace, kIo: any
  // subset of the blocks may have changed.
  DiskOp write(uint64_t offset, Bytes from, WriteOptions options, task::CancelToken token = {}) {
    const MutableBytes piece{const_cast<std::byte*>(from.data()), from.size()};
    return {*this, {DiskOp::Kind::kWrite, options.durable, offset, from.size()}, piece, token};
  }
  DiskOp write(uint64_t offset, Bytes from) { return write(offset, from, WriteOptions{}); }
  DiskOp write(uint64_t offset, std::span<const Bytes> from, WriteOptions options,
               task::CancelToken token = {}) {
    // A span of const bytes and one of bytes are the same to look at; nobody writes through it.
    const auto* pieces = reinterpret_cast<const MutableBytes*>(from.data());
    return {*this,
            {DiskOp::Kind::kWrite, options.durable, offset, total_size(from)},
            std::span<const MutableBytes>(pieces, from.size()),
            token};
  }

  // Everything that completed before is durable. kIo: nothing is known about unflushed writes.
  DiskOp flush(task::CancelToken token = {}) { return {*this, {DiskOp::Kind::kFlush}, token}; }

  // The blocks are no longer needed and read as zeroes afterwards; where the medium can, their
  // space is given back. Durability as for a write.
  DiskOp discard(uint64_t offset, uint64_t length, task::CancelToken token = {}) {
    return {*this, {DiskOp::Kind::kDiscard, false, offset, length}, token};
  }
  // The blocks read as zeroes afterwards and keep their space.
  DiskOp write_zeroes(uint64_t offset, uint64_t length, WriteOptions options,
                      task::CancelToken token = {}) {
    return {*this, {DiskOp::Kind::kWriteZeroes, options.durable, offset, length}, token};
  }
  DiskOp write_zeroes(uint64_t offset, uint64_t length) {
    return write_zeroes(offset, length, WriteOptions{});
  }

  // Grows (new blocks read as zeroes) or shrinks (their contents are gone) to a multiple of
  // block_size(). No other operation may be in flight. kUnsupported: a device has its own size.
  DiskOp resize(uint64_t size, task::CancelToken token = {}) {
    return {*this, {DiskOp::Kind::kResize, false, 0, size}, token};
  }

 protected:
  friend class DiskOp;
  // For back ends: requests that arrive here passed check().
  virtual void start_disk_op(DiskOp& op) = 0;
  virtual void cancel_disk_op(DiskOp& op) = 0;

 private:
  Result<void> check(const DiskOp& op) const;
};

struct DiskOptions {
  std::string path;
  uint64_t size = 0;    // of a new file, or demanded of an old one; 0: whatever it is
  bool create = false;  // make the file when it is missing
  bool direct = true;   // bypass the page cache where the file system can
  bool read_only = false;
  uint32_t block_size = 0;  // 0: what the medium asks for, at least 512
  bool lock = true;         // false: another Disk of this process holds it, on another core
};

}  // namespace cairn::env
