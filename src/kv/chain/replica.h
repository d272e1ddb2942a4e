// SPDX-License-Identifier: Apache-2.0
// Replica: a node's part in the chains that its view says it is in.
//
// A write is decided by the head against its newest record, and put into each store from head to
// tail; each node answers the one before it when all behind it have it, so the answers are the
// acknowledgements that publish a record backwards. Until then a key is dirty at a node, which then
// sends readers to the tail. What is in a store is never rolled back: a node whose successor went
// passes its dirty records to the next one, and the last of a chain publishes what it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/chain/command.h"
#include "kv/chain/marks.h"
#include "kv/chain/message_format.h"
#include "kv/chain/peers.h"
#include "kv/chain/turns.h"
#include "kv/engine/shares.h"
#include "kv/keyspace.h"
#include "kv/ring/view.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::chain {

struct ReplicaOptions {
  Duration pass_timeout = 1_s;   // of one attempt to pass a record on
  Duration pass_retry = 20_ms;   // after one that failed
  Duration serve_timeout = 4_s;  // of a call that waits for others
  Duration copy_pause;           // between batches of a copy: its throttle
  engine::SharesOptions shares;  // of the store, among those who call
};

struct ReplicaStats {
  uint64_t gets = 0;
  uint64_t shipped = 0;     // of them, to the tail
  uint64_t writes = 0;      // decided here
  uint64_t copied = 0;      // records sent to a joining replica
  uint64_t wiped = 0;       // records that were not ours any more
  uint64_t ended = 0;       // keys that were erased because their end had come
  uint64_t repaired = 0;    // damaged records that were written anew from another replica
  uint64_t unrepaired = 0;  // attempts at it that found none, or could not write it
  uint64_t unnamed = 0;     // damage met by scans, of which nobody can tell whose it is
};

// So many changes of the store may be under way; who has them all knows that there are none.
inline constexpr size_t kChangesMax = 4096;

// Where a user's key lies in the store.
std::string stored_key(std::string_view key);
// A store's key as users know it; none: it is not one of theirs.
std::optional<std::string> user_key(const std::string& stored);

// One core. The keyspace and the peers outlive it.
class Replica {
 public:
  Replica(env::Env& env, Keyspace& store, Peers& peers, ring::MemberId self,
          const ReplicaOptions& options);

  // Acts by that view from now on. Not older than the one before. Waits for nothing.
  void set_view(std::shared_ptr<const ring::View> view, ring::Incarnation mine);
  // Whether this node may serve: its lease is good.
  void set_may_serve(std::function<bool()> may_serve) { may_serve_ = std::move(may_serve); }
  // Told which ranges were copied to their joining replicas.
  using OnCopied = std::function<void(std::vector<std::pair<uint64_t, ring::Epoch>>)>;
  void set_on_copied(OnCopied on_copied) { on_copied_ = std::move(on_copied); }

  // Told of each damaged record, and who had a good one; none: nobody, or it could not be written.
  // No key: a scan met damage, and nobody can tell whose it is.
  using OnDamaged = std::function<void(std::string_view key, std::optional<ring::MemberId> from)>;
  void set_on_damaged(OnDamaged on_damaged) { on_damaged_ = std::move(on_damaged); }

  task::Task<GetReply> get(GetRequest request, task::CancelToken token);
  task::Task<WriteReply> write(WriteRequest request, task::CancelToken token);
  task::Task<PassReply> forward(ForwardRequest request, task::CancelToken token);
  task::Task<PassReply> copy(CopyRequest request, task::CancelToken token);
  task::Task<FetchReply> fetch(FetchRequest request);
  task::Task<NamesReply> names(NamesRequest request);

  // Some keys that are there and whose chain names this node (ring::RingRange::named()), as
  // Keyspace::scan() gives them. Damage that cannot be named is repaired first, as far as others
  // name it.
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count);

  ring::MemberId self() const { return self_; }
  const ring::View* view() const { return view_.get(); }
  const std::shared_ptr<const ring::View>& shared_view() const { return view_; }
  const ReplicaStats& stats() const { return stats_; }
  const engine::Shares& shares() const { return shares_; }
  size_t dirty_keys() const { return marks_.size(); }

  // Ends what is under way. Once, before it is destroyed; calls have ended by then.
  task::Task<void> close();

 private:
  class HeadChange;
  class PassChange;
  class WipeChange;
  class RepairChange;
  // Where this node is in a chain.
  struct Spot {
    ring::Epoch epoch;
    size_t position = 0;
    ring::Replica::State state{};
    bool is_last = false;
    bool is_read_tail = false;
    std::string next;       // address of the one behind; empty: it is the last
    std::string read_tail;  // of who answers reads of dirty keys
    uint64_t range_end = 0;
  };
  using RangeKey = std::pair<uint64_t, ring::Epoch>;

  bool may_act() const;
  std::optional<Spot> spot(uint64_t hash) const;
  // Whether the newest view has this process in the chain, perhaps by a lease that it lost: then it
  // knows all that was acknowledged there, and keeps its marks until it may act again.
  bool is_of_chain(uint64_t hash) const;
  // The same, if the chain's epoch is that one.
  std::optional<Spot> spot(std::string_view key, ring::Epoch epoch) const;

  // A record is in the store: it is published if this is the last, else passed on.
  void note_stored(const std::string& key, Record record);
  task::Task<void> pass_on(std::string key, std::shared_ptr<Mark> mark);
  // Until so much of the key is published. kReset: this node's part in the chain ended.
  task::Task<Result<void>> published(std::string key, uint64_t version, ring::Epoch epoch,
                                     task::CancelToken token);
  task::Task<GetReply> get_through(Keyspace& store, GetRequest request, task::CancelToken token);
  task::Task<WriteReply> write_through(Keyspace& store, WriteRequest request,
                                       task::CancelToken token);
  static Result<std::optional<Record>> record_of(const std::optional<Entry>& entry);
  task::Task<Result<void>> put_record(Keyspace& store, const std::string& key, const Record& record,
                                      ring::Epoch epoch);
  static Status status_of(const Error& error);
  int64_t now_ms() const { return env_.wall_now().ns / 1'000'000; }

  // replica_repair.cc
  // A record, which is fetched from another replica and written anew if it is damaged.
  task::Task<Result<std::optional<Record>>> read_record(Keyspace& store, std::string key);
  task::Task<Result<std::optional<Record>>> repair(std::string key);
  task::Task<Result<std::optional<Record>>> repair_in_turn(const std::string& key);
  task::Task<std::optional<Record>> fetch_good(const std::string& key, bool only_published,
                                               ring::MemberId& from);
  task::Task<Result<void>> rewrite(const std::string& key, const Record& record,
                                   uint64_t damaged_version);
  // replica_names.cc
  struct Names {
    std::vector<std::string> keys;
    bool is_all = false;
  };
  // All keys that another node has, as far as it can tell them.
  task::Task<Names> names_at(std::string address);
  // Whoever else holds ranges that this node holds, and these ranges.
  using Holders = std::map<std::string, std::set<RangeKey>>;
  Holders other_holders() const;
  // Reads what others say there is, so that it is repaired. Whether something was.
  task::Task<bool> repair_unnamed();

  // A change of one key's record; again after a repair if what was there is damaged.
  task::Task<Result<void>> change_record(Keyspace& store, const std::string& key, Change& change);

  // replica_keys.cc
  void note_end(const Record& record);
  task::Task<void> erase_ended();
  task::Task<Result<void>> look_for_ends(const std::vector<std::string>& stored_keys);
  task::Task<void> erase_if_ended(std::string key, uint64_t version);

  // replica_copy.cc
  // A copy of ranges to their joining replicas.
  struct CopyBatch {
    std::vector<CopyItem> items;
    size_t bytes = 0;
  };
  struct Copy {
    std::set<RangeKey> ranges;
    std::set<RangeKey> lacking;  // of them, those with a key that nobody here can read
    std::map<RangeKey, CopyBatch> batches;
  };
  task::Task<void> clean();
  task::Task<void> fill_others();
  task::Task<void> await_news(Duration at_most);
  task::Task<Result<void>> wipe(std::set<RangeKey> ranges);
  // kCorrupt: some of them lack a key; the others are complete.
  task::Task<Result<void>> copy_ranges(std::set<RangeKey> ranges);
  task::Task<Result<void>> copy_key(Copy& copy, std::string key);
  // By the names that others know: where a scan here met damage without a name.
  task::Task<Result<void>> copy_by_names(Copy& copy);
  task::Task<Result<void>> send_batch(RangeKey range, std::vector<CopyItem> items);
  std::set<RangeKey> ranges_to_wipe() const;
  std::set<RangeKey> ranges_to_copy() const;
  bool has_strangers() const;
  task::Task<Result<void>> sweep();
  const ring::RingRange* range_now(RangeKey range) const;
  void tell_copied();

  env::Env& env_;
  engine::Shares shares_;
  Keyspace& for_chain_;   // the store, for what the head of a chain has let in
  Keyspace& for_upkeep_;  // the same for what a node does by itself
  Peers& peers_;
  const ring::MemberId self_;
  const ReplicaOptions options_;
  std::function<bool()> may_serve_;
  OnCopied on_copied_;
  OnDamaged on_damaged_;
  Turns repairs_;
  task::Semaphore naming_{1};  // of repair_unnamed()
  ring::Epoch named_in_;       // the view in which others were asked for names, in vain
  std::shared_ptr<const ring::View> view_;
  ring::Incarnation incarnation_;
  Marks marks_;
  bool has_ends_ = true;  // there may be keys that end
  bool saw_ends_ = true;  // since the last look at all keys began
  uint64_t eraser_ = 0;   // as a client, of keys that ended
  uint64_t last_erase_ = 0;
  uint64_t writes_decided_ = 0;
  std::set<RangeKey> wiped_;   // joining here, and emptied
  std::set<RangeKey> ready_;   // joining behind us, and emptied: it gets what is written
  std::set<RangeKey> copied_;  // joining behind us, and complete
  ring::Epoch swept_;          // what was not ours in that view is gone
  task::Semaphore changes_;    // of the store, under way
  task::Event view_moved_;
  task::CancelSource stop_;
  task::Gate gate_;
  ReplicaStats stats_;
};

}  // namespace cairn::kv::chain
