// SPDX-License-Identifier: Apache-2.0
// Market: the view of a pool's boxes and the auction of their bandwidth, for as long as this
// process leads. No I/O.
//
// It keeps nothing. One that begins anew, because another arbiter leads or because the pool has
// other drives than before, numbers drives anew: clients are refused, join again, and after a
// window and an epoch it knows what the last one knew.
//
// A drive with one tenant is not held to what it seems to take: nobody else has a use for the rest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "arbiter/market/conduct.h"
#include "arbiter/placement.h"
#include "arbiter/pool.h"
#include "arbiter/terms_judge.h"
#include "base/error.h"
#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "share/auction.h"
#include "share/trade_messages.h"
#include "view/controller.h"

namespace cairn::arbiter {

// What is known of the drives of a pool beforehand.
struct MarketOptions {
  uint64_t drive_bytes_per_s = 2_GiB;     // that each reads at most
  uint64_t drive_floor = 200_MiB;         // that each does whatever is asked: floors are of it
  uint64_t port_bytes_per_s = 12500_MiB;  // of boxes, in each direction
};

// Where a drive of a pool stands in the view. A box is what the pool calls so, else an address; a
// port of it an address; a drive is named by its number, "d7".
struct DriveSpot {
  view::BoxId box;
  uint16_t port = 0;
  uint16_t index = 0;
  std::string uri;
  std::string box_name;
  friend bool operator==(const DriveSpot&, const DriveSpot&) = default;
};
struct Topology {
  std::vector<view::BoxSpec> boxes;
  std::map<MegaVolId, DriveSpot> spots;  // of drives in the first kBoxesMax boxes
};
Topology topology_of(const Pool& pool, const MarketOptions& options);

// One core. It is told of the pool before each use, and that this process leads no more.
class Market final : public LoadSource, public TermsJudge {
 public:
  Market(env::Env& env, MarketOptions options) : env_(env), options_(options) {}

  // As the pool is now: new terms, volumes that changed hands, other drives; ends epochs.
  void follow(const Pool& pool);
  // This process begins to lead, or does so no more.
  void begin_anew() { running_.reset(); }

  // Of the view. Null: nobody has followed a pool with drives yet.
  view::Controller* controller() { return running_ ? &running_->controller : nullptr; }

  // What clients ask, of the pool that was followed. Join: kNotFound: there is no such volume;
  // kDenied: somebody else has it open. Trade: kNotFound: join; kInvalid: no drive of the pool.
  Result<share::JoinReply> join(const Pool& pool, const share::JoinRequest& request);
  Result<share::TradeReply> trade(const share::TradeRequest& request);
  void leave(const share::LeaveRequest& request);

  // Zero where nobody tells anything.
  DriveLoad load(MegaVolId id) const override;
  DriveLoad load_for(MegaVolId id, std::string_view volume) const override;
  Attempt<void> judge(const Pool& pool, const std::string& volume,
                      const share::Terms& terms) const override;

  const share::Auction* auction() const { return running_ ? &running_->auction : nullptr; }

 private:
  struct Tenant {
    std::string volume;
    std::string client;
    share::Terms terms;
    share::TenantId id;  // none: it does not trade
    bool trades = false;
  };
  struct Running {
    Running(uint64_t its_incarnation, Topology its_topology, const MarketOptions& options,
            Time now);
    uint64_t incarnation;
    Topology topology;
    view::Controller controller;
    share::Auction auction;
    std::map<uint64_t, Tenant> tenants;  // by ticket
    Conduct conduct;
    // Of what a drive is used for, the thousandths that a volume has.
    std::map<std::pair<MegaVolId, std::string>, int32_t> parts;
    Time parts_until;
    std::set<MegaVolId> used;  // drives of which somebody tells something
    Time next_epoch;
  };

  void set_rates();
  void follow_volumes(const Pool& pool);
  void open(Tenant& tenant);
  // Only tenants tell the view of requests.
  void admit_tenants();
  void end_epoch(Time now);
  void judge_conduct(const Pool& pool);
  // What volumes do at drives of the pool, by the view.
  std::vector<Conduct::Use> uses(Time now) const;
  void note_parts(Time now) const;

  env::Env& env_;
  const MarketOptions options_;
  std::unique_ptr<Running> running_;
};

}  // namespace cairn::arbiter
