// SPDX-License-Identifier: Apache-2.0
// StackLoad: every kind of request at random on a stack, and whether its answers are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "drive/drive.h"
#include "env/env.h"
#include "stack/live_stack.h"
#include "stack/stack.h"
#include "task/task.h"
#include "testing/stack/block_model.h"
#include "testing/stack/files.h"

namespace cairn::stack {

struct LoadOptions {
  std::string stack;
  size_t workers = 8;
  uint64_t requests = 400;  // of each life; then the stack is closed in good order
  double cancel_share = 0.03;
  std::map<std::string, std::string> files = {{"drive.key", drive::testing_key(1)}};
  uint64_t values = UINT64_MAX;     // how many different blocks there are, besides zeroes
  bool is_noise = false;            // blocks cannot be compressed
  bool errors_are_wrong = true;     // no disk fails: every request succeeds or is cancelled
  bool faults_come_late = false;    // whatever fails then, opening and the first reads do not
  bool may_forget = false;          // what was not flushed, if the next flush fails
  bool may_not_open = false;        // then the life is over
  bool fills = false;               // all blocks are written before the first load
  Duration think_max;               // at random between two requests of a worker
  double flush_share = 0;           // of requests, besides those that come anyway
  double durable_share = 0.2;       // of changes
  drive::Leaves* leaves = nullptr;  // who opens them; null: they are sources
};

// Outlives the program's crashes: what blocks must hold is known here. A program's life is
// live(env): open the stack, read every block, then load it.
class StackLoad {
 public:
  explicit StackLoad(LoadOptions options) : options_(std::move(options)) {}

  task::Task<void> live(env::Env& env);
  // Called by the test when power failed, before the next life.
  void crashed() { has_crashed_ = true; }
  // The same when the program was killed and its disks kept what they had in their caches: nothing
  // that completed is lost if the drive then has the local_opening that it had.
  void killed() { was_killed_ = true; }
  // Lives after a kill of which that was so.
  uint64_t kept() const { return kept_; }

  // A box below the running stack lost power: what was written and not flushed, or is in flight,
  // may be there or not from now on.
  void lost_below();

  // The next life opens this, which must have the same blocks.
  void change_stack(std::string stack) { options_.stack = std::move(stack); }
  // From now on every request is waited for.
  void stop_cancelling() { options_.cancel_share = 0; }
  // From the next life on.
  void may_not_open() { options_.may_not_open = true; }
  // From the next life on no disk fails.
  void must_succeed() {
    options_.errors_are_wrong = true;
    options_.may_not_open = false;
  }

  // The first thing that was wrong; empty: nothing.
  const std::string& failure() const { return failure_; }
  uint64_t done() const { return done_; }
  // Lives that ended in good order.
  uint64_t finished() const { return finished_; }
  // Told of the drive while it is open; null when it closes.
  std::function<void(drive::Drive*)> on_open;
  // The same, for those who change it.
  std::function<void(drive::LiveStack*)> on_live;
  // The load begins: what was there before was right.
  std::function<void()> on_load;
  // A flush, or a durable change, has just succeeded.
  std::function<void()> on_flushed;
  std::function<void()> on_durable;
  // What the next life opens.
  void open_next(std::string stack) { options_.stack = std::move(stack); }

 private:
  struct Range {
    size_t first = 0;
    size_t count = 0;
  };
  void wrong(std::string text);
  bool goes_on(env::Env& env) const;
  task::Task<void> check_all(env::Env& env, drive::Drive& drive);
  task::Task<void> fill_all(env::Env& env, drive::Drive& drive);
  task::Task<void> work(env::Env& env, drive::Drive& drive);
  task::Task<void> flush(env::Env& env, drive::Drive& drive);
  static task::Task<void> pause(env::Env& env);
  task::Task<void> request(env::Env& env, drive::Drive& drive, Range range,
                           drive::Request::Kind kind);
  // What a request began with.
  struct Begun {
    bool must_match = false;  // a compare
    uint64_t losses = 0;      // there had been so many
  };
  void settle(const drive::Request& request, Range range, const Result<void>& done,
              const std::vector<std::byte>& data, const Begun& begun, drive::Drive& drive);
  bool is_safe(Range range) const;
  // The first thing of a life after a kill.
  void settle_kill(const drive::Drive& drive);
  // The drive shows that it lost what was not flushed: the next flush has to say so.
  void forgot();
  bool claim(Range range);
  void release(Range range);
  bool is_certain(Range range) const;

  LoadOptions options_;
  std::vector<BlockModel> model_;  // one, once the size is known
  std::vector<bool> claimed_;
  uint64_t next_value_ = 1;
  uint64_t begun_ = 0;
  uint64_t done_ = 0;
  uint64_t finished_ = 0;
  uint64_t losses_ = 0;
  std::set<Time> failed_at_;  // flushes
  bool owes_error_ = false;   // of a flush
  bool has_crashed_ = false;
  bool was_killed_ = false;
  uint64_t local_opening_ = 0;  // of the drive, as it was opened last
  uint64_t kept_ = 0;
  bool is_filled_ = false;
  std::string failure_;
};

}  // namespace cairn::stack
