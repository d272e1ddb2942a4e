// SPDX-License-Identifier: Apache-2.0
// The plain structs that move through the drive: requests of the host, and work on flash pages.
#pragma once

#include <array>
#include <cstdint>

#include "model/flash/parameters.h"
#include "model/flash/pool.h"

namespace cairn::flash {

enum class Op : uint8_t { kRead, kWrite, kTrim, kFlush };

// What a host asks. Sectors are 512 bytes, counted from the start of the stream's space; a request
// that leaves it wraps around.
struct HostRequest {
  Op op = Op::kRead;
  uint32_t stream = 0;
  uint64_t lba = 0;
  uint32_t sectors = 0;
  uint64_t cookie = 0;   // comes back with the completion
  bool durable = false;  // of a write or trim: done when no power cut can undo it
};

struct Completion {
  uint64_t cookie = 0;
  Op op = Op::kRead;
  uint32_t stream = 0;
  uint64_t lba = 0;
  uint32_t sectors = 0;
  Nanos arrival = 0;  // when it was submitted
  Nanos done = 0;     // when the host saw the completion entry
};

// A request's life: host queue, submission queue, fetched, in the drive, completion sent.
struct RequestState {
  uint32_t next = kNone;
  uint32_t pages_left = 0;     // flash transactions, or pages not yet in the cache
  uint32_t dram_sectors = 0;   // on their way through DRAM
  uint32_t programs_left = 0;  // of a durable write that also goes through the cache
  Op op = Op::kRead;
  bool durable = false;
  uint32_t stream = 0;
  uint32_t sectors = 0;
  uint64_t lba = 0;
  uint64_t cookie = 0;
  Nanos arrival = 0;
  uint64_t queue_head = 0;  // what its completion entry tells about the submission queue
  // Where cutting into pages goes on, for a write that waits for the cache.
  uint64_t cut_lba = 0;
  uint32_t cut_sectors = 0;
  Nanos stamp = 0;
};

// What a request, or a slot of the cache, is about in one page.
struct PagePart {
  uint32_t lpa = 0;
  uint64_t sectors = 0;  // one bit each
  uint32_t count = 0;    // of sectors that move
  uint64_t at_hand = 0;  // of a program: sectors that flash has and DRAM too
};

enum class Source : uint8_t { kUser, kCache, kMapping, kCollector };
enum class Kind : uint8_t { kRead, kProgram, kErase };

struct Transaction {
  uint32_t next = kNone;
  uint32_t prev = kNone;
  Kind kind = Kind::kRead;
  Source source = Source::kUser;
  PriorityClass priority = PriorityClass::kHigh;
  uint8_t stream = 0;
  uint32_t request = kNone;
  uint32_t lpa = 0;  // of a mapping transaction: the translation page
  uint32_t ppa = kNone;
  uint32_t plane = 0;
  uint32_t page = 0;  // in its block
  uint32_t bytes = 0;
  // A program waits for its update read; the read knows the program.
  uint32_t update_read = kNone;
  uint32_t update_of = kNone;
  uint32_t collection = kNone;
  uint32_t epoch = 0;  // of a user program: who waits for it, see Barriers
  uint64_t sectors = 0;
  uint64_t at_hand = 0;  // of a program: sectors that flash has and DRAM too
  Nanos stamp = 0;
  uint64_t order = 0;  // in the queues
};

// A victim block on its way to the free pool.
struct Collection {
  uint32_t next = kNone;
  uint32_t plane = 0;
  uint32_t block = 0;
  uint32_t reads_left = 0;  // pages not yet asked from flash
  uint32_t moves_left = 0;  // pages not yet programmed elsewhere
  uint32_t next_page = 0;   // no page below is left to read
  bool postponed = false;   // waits until nobody else uses the block
  bool wear = false;
  static constexpr uint32_t kWords = 128;  // 8192 pages
  std::array<uint64_t, kWords> unread{};
};

}  // namespace cairn::flash
