// SPDX-License-Identifier: Apache-2.0
// Client: keys of a cluster for programs. Reads go to any running replica of a key, writes to its
// head; who says that the chain is another one makes the client look at the view again. What nodes
// say of their free tokens decides which replica is asked, and when (flow.h).
//
// A write is sent again, with the same number, until its time is over: it is carried out once at
// most. So kTimedOut means: once, not at all, or shortly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/chain/command.h"
#include "kv/chain/flow.h"
#include "kv/chain/message_format.h"
#include "kv/chain/peers.h"
#include "kv/chain/replica.h"
#include "kv/chain/turns.h"
#include "kv/ring/view.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::kv::chain {

struct ClientOptions {
  std::vector<std::string> seeds;  // addresses of some nodes
  Duration timeout = 10_s;         // of a call, with everything that is tried
  Duration attempt = 2_s;          // of one attempt of a write, or read
  Duration retry = 20_ms;
  std::shared_ptr<const rpc::Security> security;
  std::string tenant;  // whose part of nodes' tokens it uses, where nodes know callers by no key
  bool uses_tokens = true;     // else a read goes to any replica, and nothing waits for tokens
  bool reads_at_tail = false;  // for comparison: chain replication without CRRS
  Replica* local = nullptr;  // of this process, asked without rpc where it can answer; outlives it
};

struct Found {
  uint64_t version = 0;  // of the newest record, also of a key that is not there; 0: there is none
  std::optional<std::string> value;
  int64_t expires_ms = kNoEnd;
};

// One core. Any number of calls at once; writes of one key one after the other.
class Client {
 public:
  Client(env::Env& env, const ClientOptions& options);

  // kTimedOut: no replica answered; kInvalid: no such key can be.
  task::Task<Result<Found>> get(std::string key, task::CancelToken token = {});
  // kTimedOut: it may have been carried out, or will be; kInvalid, kNoSpace: it was not.
  task::Task<Result<Outcome>> write(std::string key, Command command, task::CancelToken token = {});

  // Null: it knows none yet.
  const ring::View* view() const { return view_.get(); }

  // Once, before it is destroyed, when calls have ended.
  task::Task<void> close() { return peers_.close(); }

 private:
  struct Attempted {
    bool was_sent = false;  // somebody may have heard it
    WriteReply reply;
  };
  task::Task<void> refresh(task::CancelToken token);
  void take_local_view();
  // Waits, and looks at the view.
  task::Task<void> back_off(task::CancelToken token);
  std::string address_of(ring::MemberId member) const;
  std::vector<ring::MemberId> readers_of(const ring::RingRange& range) const;
  task::Task<Result<Flow::Passage>> pass(Flow::Kind kind, uint32_t cost,
                                         std::vector<ring::MemberId> nodes,
                                         task::CancelToken token);
  task::Task<std::optional<Found>> try_get(const std::string& key, task::CancelToken token);
  Found found_in(GetReply reply) const;
  bool is_local(ring::MemberId member) const;
  task::Task<Result<GetReply>> ask(ring::MemberId member, GetRequest request,
                                   task::CancelToken token);
  task::Task<Result<WriteReply>> ask(ring::MemberId member, const WriteRequest& request,
                                     task::CancelToken token);
  task::Task<Result<Outcome>> write_in_turn(std::string key, Command command,
                                            task::CancelToken token);
  task::Task<Attempted> try_write(WriteRequest& request, task::CancelToken token);

  env::Env& env_;
  const ClientOptions options_;
  const uint64_t id_;
  uint64_t last_number_ = 0;
  Peers peers_;
  Flow flow_;
  std::shared_ptr<const ring::View> view_;
  Turns turns_;  // of writes
};

}  // namespace cairn::kv::chain
