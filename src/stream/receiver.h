// SPDX-License-Identifier: Apache-2.0
// Receiver: bytes from a stream, looked at in place and taken PDU by PDU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "env/stream.h"
#include "task/task.h"

namespace cairn::stream {

// What has arrived. In a real world a read that waited is a system call or a completion of one.
struct ReceiveCounters {
  uint64_t reads = 0;
  uint64_t pdus = 0;
  uint64_t bytes = 0;

  void add(const ReceiveCounters& other) {
    reads += other.reads;
    pdus += other.pdus;
    bytes += other.bytes;
  }
};

// One buffer; what was taken makes room at its front, and the rest moves there before it would run
// out. Large data bypasses it: read_into() takes what is here and reads the rest to its place,
// while what comes behind it lands here in the same call.
class Receiver {
 public:
  Receiver(env::Stream& stream, size_t size);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Makes the buffer larger.
  void grow(size_t size);
  // Once a read fills the buffer it grows to `max`, if `reserve` has the bytes; they go back there
  // at the end.
  void let_grow(size_t max, size_t& reserve);

  // What is here. Valid until the next call that waits.
  MutableBytes bytes() const { return {memory_.get() + begin_, end_ - begin_}; }
  void take(size_t count) { begin_ += count; }
  // The owner has understood one more PDU.
  void note_pdu() { ++counters_.pdus; }
  const ReceiveCounters& counters() const { return counters_; }

  // Waits for more: at least one byte. kClosed: the peer has finished.
  task::Task<Result<void>> more(task::CancelToken token);
  // Waits until `count` bytes are here, at most the buffer's size.
  task::Task<Result<void>> wait_for(size_t count, task::CancelToken token);
  // Throws the next bytes away.
  task::Task<Result<void>> skip(size_t count, task::CancelToken token);
  // Fills `to` with the next bytes.
  task::Task<Result<void>> read_into(MutableBytes to, task::CancelToken token);

 private:
  MutableBytes room();
  void note_read(size_t bytes) {
    ++counters_.reads;
    counters_.bytes += bytes;
  }
  void grow_if_full();

  env::Stream& stream_;
  std::unique_ptr<std::byte[]> memory_;
  size_t size_;
  size_t max_ = 0;       // see let_grow()
  size_t borrowed_ = 0;  // from the reserve
  size_t* reserve_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  ReceiveCounters counters_;
};

}  // namespace cairn::stream
