// SPDX-License-Identifier: Apache-2.0
// Drive: everything that stores blocks. A file, memory, a namespace across the network, a mirror of
// two others: all are used, and composed, through this interface. Contract: docs/drive.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/list.h"
#include "base/units.h"
#include "task/operation.h"
#include "task/task.h"

namespace cairn::drive {

class Drive;
class DriveOp;

// Who handed an operation on to another drive, and is told when that one completes it. The
// operation may be gone as soon as this returns.
class Relay {
 public:
  virtual void relayed(DriveOp& op, const Result<void>& done) = 0;

 protected:
  ~Relay() = default;
};

// What a drive is. Fixed while it is open, except blocks, which resize() changes.
struct Geometry {
  uint64_t blocks = 0;
  uint32_t block_size = 4096;      // a power of two, 512 to 65536
  uint32_t optimal_blocks = 1;     // reads and writes of a multiple of this cost least
  uint32_t discard_blocks = 1;     // discards of a multiple of this give space back
  uint32_t atomic_blocks = 1;      // writes up to this size happen wholly or not at all
  uint32_t transfer_blocks = 256;  // the largest read, write or compare
  bool volatile_cache = true;      // without flush() or durable, a crash may lose what was written
  uint8_t copies = 1;              // of every block, each readable for itself by Request::copy
  uint64_t bytes() const { return blocks * block_size; }
};

// Where else a write goes, in a drive with blocks of the same size.
struct Replica {
  Drive* drive = nullptr;
  Lba lba{};
};

// How much a request matters to whoever waits for it; services may reorder by it.
enum class Priority : uint8_t { kUrgent, kHigh, kNormal, kLow };

// Kind and range of one request. Ranges are in blocks of the drive.
struct Request {
  enum class Kind : uint8_t {
    kRead,
    kWrite,
    kCompare,          // kMismatch unless the medium holds these bytes
    kCompareAndWrite,  // compares with `data`, then writes `second`; nobody writes in between
    kFlush,
    kDiscard,
    kWriteZeroes,
  };
  Kind kind = Kind::kRead;
  bool durable = false;   // kWrite, kWriteZeroes, kCompareAndWrite: survives a crash when complete
  bool no_delay = false;  // somebody waits for just this: send it on at once
  bool metadata = false;  // others wait for what it tells (an index, a journal): likewise
  bool keep_space = false;  // kWriteZeroes: the blocks stay allocated
  // kFlush: whoever asks learns of losses from incarnation(). One that it tells of is no failure of
  // this flush, and stays to be told to the next flush without this. Ignoring it is correct.
  bool knows_losses = false;
  // Somebody else, a guest for instance, can change the memory while the request runs. Whoever
  // looks at it twice, or keeps what it read into it, takes a copy (docs/drive.md).
  bool unstable_memory = false;
  Priority priority = Priority::kNormal;
  uint8_t copy = 0;  // kRead: 1 to copies, just that one, be it right or wrong; 0: a right one
  Lba lba{};
  uint64_t blocks = 0;
  // kWrite: where the same blocks are written as well, by drives that can_replicate_to() these:
  // kUnsupported otherwise. After any other error each of them holds the old or the new, as after a
  // write that failed. What is lent here outlives the request, as the drives do.
  std::span<const Replica> replicas{};

  // Whether somebody waits for just this request, so that nothing should hold it back to batch it.
  bool is_urgent() const {
    return no_delay || metadata || durable || kind == Kind::kFlush || priority <= Priority::kHigh;
  }
  bool writes() const {
    return kind != Kind::kRead && kind != Kind::kCompare && kind != Kind::kFlush;
  }
};

// One request on its way, made by the functions of Drive and awaited. The hook and the scratch room
// are the drive's own while it has the operation: it can queue requests without allocating.
class DriveOp final : public task::Operation<void>, public ListHook<DriveOp> {
 public:
  DriveOp(Drive& drive, const Request& request, MutableBytes piece, task::CancelToken token)
      : Operation(token), request(request), drive_(&drive), piece_(piece), data_(&piece_, 1) {}
  DriveOp(Drive& drive, const Request& request, std::span<const MutableBytes> data,
          std::span<const MutableBytes> second, task::CancelToken token)
      : Operation(token), request(request), drive_(&drive), data_(data), second_(second) {}

  const Request request;
  // Where a read goes; what a write or compare takes (only read from then).
  std::span<const MutableBytes> data() const { return data_; }
  // kCompareAndWrite: what is written.
  std::span<const MutableBytes> second() const { return second_; }
  using Operation::cancelled;
  using Operation::token;
  void complete(const Result<void>& done) {
    if (relay_ != nullptr) std::exchange(relay_, nullptr)->relayed(*this, done);
    Operation::complete(done);
  }
  // When it was handed on; only for the one who did.
  Time handed_on() const { return handed_on_; }

  static constexpr size_t kScratchSize = 64;
  alignas(8) std::byte scratch[kScratchSize];

 private:
  friend class Drive;
  void start() override;
  void cancel() override;
  Drive* drive_;
  Relay* relay_ = nullptr;
  Time handed_on_;
  MutableBytes piece_;
  std::span<const MutableBytes> data_;
  std::span<const MutableBytes> second_;
};

// Blocks that follow each other and are alike.
struct Extent {
  uint64_t blocks = 0;
  bool is_hole = false;  // they hold no space and read as zeroes
};

// What a layer says about itself, for people and metrics: "regions_to_copy" 17.
struct Fact {
  std::string_view name;
  uint64_t value = 0;
};

// Which contents a drive has, and since when somebody keeps them: what tells a drive that came back
// from one that came back empty, or without what was not flushed. 0: not known.
struct Incarnation {
  uint64_t medium = 0;   // stays as long as the contents do; memory that is new has a new one
  uint64_t opening = 0;  // drawn whenever the medium is opened: writes that were not flushed before
                         // another opening may be lost
  // As `opening`, for somebody on this machine who outlives the process, a guest for instance: what
  // completed is lost with another one, and with no other (local_opening.h). Two that differ in
  // nothing else are equal.
  uint64_t local_opening = 0;
  friend bool operator==(const Incarnation& one, const Incarnation& other) {
    return one.medium == other.medium && one.opening == other.opening;
  }
};

// How well a layer keeps its promises.
enum class Health : uint8_t {
  kOk,
  kDegraded,  // nothing is lost, and less can fail than was asked for: a lost leg, nearly full
  kFailing,   // requests fail: full, no leg left
};

// One reason why a layer is not well, as a sentence for people: what is wrong and what to do next.
// A concern with the same code and drive is the same one as before, whatever its words.
struct Concern {
  Health health = Health::kDegraded;
  std::string_view code;        // "leg_lost": short, stays, for metrics
  std::string what;             // "it does not answer; it is tried again every 5 s"
  std::optional<size_t> below;  // which drive below it is about; none: the layer itself
};

// Work that a layer does by itself: a copy to a leg that came back, a scrub, a rotation of keys.
struct Job {
  std::string_view name;  // "resync"
  uint64_t done = 0;      // of total, in bytes
  uint64_t total = 0;
};

// Used on one core; what several cores share is the medium behind it, opened on each. Any number of
// operations at once; no order between them except where the contract says so. Memory is lent until
// completion. Destroyed when no operation is in flight and close() has completed.
class Drive {
 public:
  virtual ~Drive() = default;

  virtual const Geometry& geometry() const = 0;

  DriveOp read(Lba lba, MutableBytes into, task::CancelToken token = {}) {
    return {*this, range(Request::Kind::kRead, lba, into.size()), into, token};
  }
  DriveOp write(Lba lba, Bytes from, task::CancelToken token = {}) {
    return {*this, range(Request::Kind::kWrite, lba, from.size()), writable(from), token};
  }
  DriveOp compare(Lba lba, Bytes with, task::CancelToken token = {}) {
    return {*this, range(Request::Kind::kCompare, lba, with.size()), writable(with), token};
  }
  DriveOp flush(task::CancelToken token = {}) {
    return {*this, {.kind = Request::Kind::kFlush}, {}, token};
  }
  DriveOp discard(Lba lba, uint64_t blocks, task::CancelToken token = {}) {
    return {*this, {.kind = Request::Kind::kDiscard, .lba = lba, .blocks = blocks}, {}, token};
  }
  DriveOp write_zeroes(Lba lba, uint64_t blocks, task::CancelToken token = {}) {
    return {*this, {.kind = Request::Kind::kWriteZeroes, .lba = lba, .blocks = blocks}, {}, token};
  }
  // Any request with its pieces; the pieces' sizes must add up to its blocks.
  DriveOp submit(const Request& request, std::span<const MutableBytes> data,
                 std::span<const MutableBytes> second = {}, task::CancelToken token = {}) {
    return {*this, request, data, second, token};
  }

  // For drives that keep their blocks in memory. Both do all or nothing, before they return.
  //
  // A read, a write or a compare that needs no waiting. None: submit() it.
  std::optional<Result<void>> try_now(const Request& request, std::span<const MutableBytes> data);
  // Where the blocks of a read lie. Whoever borrows them sees later writes too; they stay there
  // until the drive is closed, or made smaller. Empty: submit() it.
  Bytes lend(Lba lba, uint64_t blocks) const;

  // What lies at `lba`, as far as it is alike: 1 to `max` blocks of those there. Of what the drive
  // does not know it says that it is no hole.
  virtual Extent extent_at(Lba lba, uint64_t max) const;

  // How this layer is doing; drives below it speak for themselves.
  virtual std::vector<Fact> facts() const { return {}; }
  // What is wrong with it, worst first; none: it is well. Likewise of this layer alone.
  virtual std::vector<Concern> concerns() const { return {}; }
  // What it does by itself at the moment.
  virtual std::vector<Job> jobs() const { return {}; }
  // As of now. A service over one drive has that drive's; one that survives the loss of drives says
  // itself what it has kept. By default nothing is known.
  virtual Incarnation incarnation() const { return {}; }
  // Whether Request::replicas may name that drive, as things are now: one command writes both. A
  // request that turns out to be impossible fails with kUnsupported. Never by default.
  virtual bool can_replicate_to([[maybe_unused]] const Drive& other) const { return false; }
  // A command for this layer alone, such as "take" for a snapshot: what came of it, or why not, as
  // a sentence. By default there are none.
  virtual task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args);
  // Another drive that this layer can show beside itself, such as a version that was kept; it is
  // closed and destroyed before this one. kNotFound by default.
  virtual Result<std::unique_ptr<Drive>> open_view(std::string_view name);

  // Changes the number of blocks. kUnsupported by default.
  virtual task::Task<Result<void>> resize(uint64_t blocks);
  // Ends what the drive does by itself; then it can be destroyed. Once, with nothing in flight.
  virtual task::Task<void> close();

 protected:
  friend class DriveOp;
  // For drives: requests come checked. Each is completed once; what has ended never lands later.
  virtual void start(DriveOp& op) = 0;
  virtual void cancel(DriveOp& op) = 0;
  // See try_now() and lend(); the request passed check().
  virtual bool run_now(const Request& request, std::span<const MutableBytes> data,
                       Result<void>& done);
  virtual Bytes lend_now(Lba lba, uint64_t blocks) const;

  // For drives that stand before another and change nothing: `to` gets the operation itself, hook
  // and scratch room included, and answers for it from here on. It has passed check() of `to`.
  // False, and nothing is done, when another relay is to be told of this operation already.
  static bool hand_on(DriveOp& op, Drive& to, Relay& relay, Time now);

 private:
  static MutableBytes writable(Bytes bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }
  // A size that is no multiple of the block makes a request that check() refuses.
  Request range(Request::Kind kind, Lba lba, size_t bytes) const;
  Result<void> check(const Request& request, std::span<const MutableBytes> data,
                     std::span<const MutableBytes> second) const;
};

}  // namespace cairn::drive
