// SPDX-License-Identifier: Apache-2.0
// Members: the drives of a pool as one client has them open, and what it knows of each.
//
// A drive that does not answer is away: nothing is sent to it until a look at its label says that
// it is back. One that came back empty, or with another label, is gone: what it held is lost.
//
// Whoever opens a drive may have been fenced there before, without knowing: so nothing is sent to
// one that was opened until an arbiter has said since that the client may (Owner::confirm()). One
// that denies everything has fenced the client, or forgotten its hosts; when the arbiter says that
// the client still may, it is opened anew.
//
// A drive where a former holder of the volume was not fenced is barred: it counts as away and is
// not opened, until an arbiter does not name it any more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/arbiter_link.h"
#include "volume/mega_vol.h"

namespace cairn::volume {

struct Member {
  enum class State : uint8_t { kOpening, kGood, kAway, kGone };

  explicit Member(MegaVolInfo its_info) : info(std::move(its_info)) {}
  bool is_good() const { return state == State::kGood; }

  MegaVolInfo info;
  std::unique_ptr<drive::Drive> drive;  // null: it could not be opened yet
  State state = State::kOpening;
  Time away_since;
  drive::Incarnation known;
  uint64_t opened_medium = 0;  // the one that `drive` was opened with
  bool was_open = false;       // `drive` was there once
  bool is_dirty = false;       // it got writes since it was last flushed
  bool is_looking = false;     // at its label
  bool is_denied = false;      // its box does not know the client any more
  bool is_former = false;      // the pool has it no more
  bool is_barred = false;      // somebody else may still write to it
  uint32_t flushes = 0;        // in flight
  uint64_t losses = 0;         // times that what it had not flushed may be lost
  uint32_t reads = 0;          // in flight
};

class Members {
 public:
  class Owner {
   public:
    // What the drive had not flushed may be gone.
    virtual void member_lost_writes(Member& member) = 0;
    // It came back, went away, or is gone.
    virtual void member_changed(Member& member) = 0;
    // An arbiter says, asked from now on, that this client may still write. kDenied; by the token.
    virtual task::Task<Result<void>> confirm(task::CancelToken token) = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it.
  Members(env::Env& env, MegaVolSource& source, Owner& owner, std::string host, MegaVolPool pool,
          Duration retry)
      : env_(env),
        source_(source),
        owner_(owner),
        host_(std::move(host)),
        pool_(pool),
        retry_(retry) {}

  // Those that the pool has now, and which of them are barred: new ones are opened. True: something
  // is another than before.
  bool set(const std::vector<MegaVolInfo>& infos, const std::vector<MegaVolId>& barred);
  // Until each was tried once, or so long.
  task::Task<void> wait_until_tried(Duration limit);
  // Null: the pool has no such drive.
  Member* find(MegaVolId id) const {
    return id.value() < by_id_.size() ? by_id_[id.value()] : nullptr;
  }
  const std::map<MegaVolId, std::unique_ptr<Member>>& all() const { return members_; }

  // To be called whenever a drive has answered, before anybody believes what it said: whether it is
  // still the one that it was.
  void look(Member& member);
  // A request failed: whether that is the drive's fault, which then may be away.
  bool blame(Member& member, const Error& error);
  void note_loss(Member& member);

  task::Task<void> close();

 private:
  task::Task<void> revive(Member& member);
  task::Task<Result<void>> try_once(Member& member);
  task::Task<Result<void>> open(Member& member, task::CancelToken token);
  void give_up_drive(Member& member);
  void set_state(Member& member, Member::State state);
  void start(Member& member);
  void retire(MegaVolId id);

  env::Env& env_;
  MegaVolSource& source_;
  Owner& owner_;
  const std::string host_;
  const MegaVolPool pool_;
  const Duration retry_;
  std::map<MegaVolId, std::unique_ptr<Member>> members_;
  std::vector<std::unique_ptr<drive::Drive>> former_;  // that were opened anew
  std::vector<std::unique_ptr<Member>> former_members_;
  std::vector<Member*> by_id_;
  size_t untried_ = 0;
  task::Event tried_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::volume
