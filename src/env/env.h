// SPDX-License-Identifier: Apache-2.0
// Env: the world as one core sees it. Production code gets time, random numbers, streams, disks and
// other cores from here and nowhere else; that is why it runs unchanged in the simulator. Contract
// of every call: docs/env.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/address.h"
#include "env/disk.h"
#include "env/memory.h"
#include "env/stream.h"
#include "env/trace.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::env {

// Work sent to another core. Lives at its sender until it has run; run() gets the Env of the core
// it runs on. The usual way to send one is call_on (env/call.h).
struct Message {
  using Run = void (*)(Message&, Env& there);
  explicit Message(Run function) : run(function) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  Run run;
  Message* next = nullptr;  // the mailbox's
};

struct ListenOptions {
  StreamOptions stream;  // for accepted connections
  int backlog = 512;
  bool share_port = false;  // several cores listen at one address; the kernel spreads connections
};

// What a core has asked of the kernel so far.
struct KernelCalls {
  uint64_t calls = 0;  // that move data or wait
  uint64_t sends = 0;  // of streams: each a call of its own, or one of many requests in a call
  // Spent in calls that send, or receive, and do nothing else; WorldOptions::time_calls.
  Duration sending;
  Duration receiving;
};

// One per core, and all calls on that core; post() too, which is called on the sender's own Env.
// now(), arm() and disarm() come from Timers.
class Env : public task::Timers {
 public:
  virtual ~Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  virtual CoreId core() const = 0;
  virtual uint32_t core_count() const = 0;

  // For people: may step at any time. Durations are measured with now().
  virtual WallTime wall_now() const = 0;

  // Seeded by the world: in a simulation every draw repeats. Not for secrets.
  virtual Rng& rng() = 0;
  // Fit for keys and challenges in the real worlds.
  virtual void fill_secret(MutableBytes bytes) = 0;

  // This core's buffers.
  virtual BufferPool& buffers() = 0;
  virtual Trace& trace() = 0;

  // Requested when this world is asked to end. The program then has to finish: long waits take it.
  virtual task::CancelToken stop_token() = 0;

  // kExists: the address is in use; kDenied; kInvalid; kUnreachable: not an address of ours.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& at,
                                                   const ListenOptions& options) = 0;
  Result<std::unique_ptr<Listener>> listen(const Address& at) { return listen(at, {}); }

  // kUnreachable: refused, no route, or no such local socket; kLimit: out of descriptors, or a
  // local listener's backlog is full; kTimedOut, kCancelled. Give it a deadline: without one the
  // kernel may try for minutes.
  ConnectOp connect(Address to, const StreamOptions& options, task::CancelToken token = {}) {
    return {*this, std::move(to), options, token};
  }
  ConnectOp connect(Address to, task::CancelToken token = {}) {
    return connect(std::move(to), StreamOptions{}, token);
  }
  // Makes this core the one that uses the connection.
  virtual std::unique_ptr<Stream> open(Connection connection) = 0;

  // One opener has a disk alone; those that open it read-only share it.
  // kNotFound, kExists (in use by another), kDenied, kNoSpace, kInvalid (size or block size),
  // kUnsupported (direct access where the file system has none: say direct=false).
  virtual Result<std::unique_ptr<Disk>> open_disk(const DiskOptions& options) = 0;

  // Zeroed memory of any size, for drives and caches that live in it. kLimit, kInvalid (0).
  virtual Result<std::unique_ptr<Memory>> map_memory(uint64_t size,
                                                     MemoryPages /*pages*/ = MemoryPages::kLarge) {
    return make_heap_memory(size);
  }

  // Runs `message` on core `to` (this one included): never inside post(), once, and in order with
  // other messages from this core to that one.
  virtual void post(CoreId to, Message& message) = 0;

  // All zero in a simulation.
  virtual KernelCalls kernel_calls() const { return {}; }

  // True now and then in a simulation, never in the real worlds: a place that says
  // `if (env.buggify("lane.short_batch"))` gets its rare branch exercised.
  bool buggify(const char* site) { return buggify_ != nullptr && buggify_(*this, site); }

 protected:
  Env() = default;
  friend class ConnectOp;
  virtual void start_connect(ConnectOp& op) = 0;
  virtual void cancel_connect(ConnectOp& op) = 0;

  bool (*buggify_)(Env&, const char*) = nullptr;
};

// What a world runs: the body of a process, on its first core. It ends when it wants to, and soon
// after stop_token() is requested.
using Program = std::function<task::Task<void>(Env&)>;

}  // namespace cairn::env
