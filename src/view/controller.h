// SPDX-License-Identifier: Apache-2.0
// Controller: the whole view. It orders what agents report, counts it once, and tells them what
// changed meanwhile (Flint, sections 3.3 and 3.4). No I/O: whoever has it gives the time.
//
// It keeps nothing. One that starts again has another incarnation; agents notice by the first
// report that it refuses, attach again, and after a window it knows what the last one knew.
//
// Clocks of agents are not set to its own: a batch says when it was sent by the agent's clock, and
// the quickest batch of the last seconds tells how far the clocks are apart. What was sent long ago
// is therefore known to be late.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "view/box_model.h"
#include "view/messages.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

// What the controller knows of a client.
struct ClientView {
  std::string name;
  uint32_t sessions = 0;
  uint64_t counted = 0;  // vectors, since it attached
  uint64_t late = 0;
  uint64_t refused = 0;
  uint64_t dropped = 0;  // by the agent
  Duration silent_for;
};

class Controller {
 public:
  static constexpr Duration kForgetAfter = 60_s;  // a client that says nothing

  // Boxes are sound (check_box), kBoxesMax at most, and their names differ.
  Controller(uint64_t incarnation, std::vector<BoxSpec> boxes);

  uint64_t incarnation() const { return incarnation_; }

  // From now on only who has a volume open tells of it: these tickets and their volumes. A session
  // without one of them is refused, and what it tells after its ticket went is not counted.
  void admit_only(std::map<uint64_t, std::string> tickets) { tickets_ = std::move(tickets); }

  // Who does not keep to its share, as somebody else found; it is part of the view.
  void set_offenders(std::vector<Offender> all) { offenders_ = std::move(all); }

  // kDenied: a session has no ticket of its volume. kInvalid: more than kSessionsMax, two of one
  // number, or a name that none has; kNotFound: there is no such box or port; kLimit: kClientsMax
  // are there already. Nothing was changed then.
  Result<AttachReply> attach(const std::string& client, const AttachRequest& request, Time now);
  // A batch that was counted already is answered as it was. kNotFound: attach first, to this
  // controller, or since another agent took the name. kInvalid: larger than a batch, or a number
  // that was passed or left out.
  Result<ReportReply> report(const std::string& client, const ReportRequest& request, Time now);
  void detach(const std::string& client) { clients_.erase(client); }

  // The whole view, or the flows of one volume and the components that they pass.
  View view(Time now, std::string_view volume = {});
  SyncReply sync(const SyncRequest& request, Time now);
  std::vector<ClientView> directory(Time now) const;
  // Those that have something in the window there.
  std::vector<std::string> users_of(ComponentId id) const;

  // Looks after drives for somebody from now on. kInvalid: more than kWatchesMax or not a drive;
  // kNotFound: there is no such drive.
  using WatcherId = Id<struct WatcherIdTag>;
  Result<WatcherId> watch(const WatchRequest& request);
  void unwatch(WatcherId id) { watchers_.erase(id); }
  // What crossed its threshold since it was last asked, the newest state of each.
  std::vector<Event> take_events(WatcherId id, Time now);
  bool has_events(WatcherId id) const;

  // Ends epochs that are over: estimates, watches, clients that are gone. At least once an epoch,
  // if somebody watches.
  void advance(Time now);

  // What volumes do at drives, of the window.
  std::vector<DriveUse> uses(Time now) const;

  // Null: there is no such box or drive.
  const DriveView* drive(std::string_view box, uint16_t index) const;

 private:
  // How far a clock is from ours: the least of the last seconds, as nothing arrives before it is
  // sent.
  struct Offset {
    static constexpr Duration kPeriod = 10_s;
    std::optional<int64_t> now;
    std::optional<int64_t> before;
    Time until{};
    Duration note(Time sent, Time arrived);
  };
  struct Session {
    SessionInfo info;
    BoxId box;
  };
  struct Client {
    ClientKey key;
    uint64_t incarnation = 0;
    std::map<SessionId, Session> sessions;
    uint64_t number = 0;
    ReportReply reply;  // to that
    Offset offset;
    Time heard{};
    ClientView counts;
  };
  struct Watched {
    Watch watch;
    bool is_below = false;
    uint64_t crossings = 0;
    uint64_t told = 0;
  };

  std::optional<BoxId> find_box(std::string_view name) const;
  Result<std::map<SessionId, Session>> check_sessions(const AttachRequest& request) const;
  ReportReply count(const std::string& name, Client& client, const ReportRequest& request,
                    Time now);
  bool is_admitted(const SessionInfo& session) const;
  void look_at_watches();

  const uint64_t incarnation_;
  std::vector<BoxModel> boxes_;
  std::map<std::string, Client> clients_;
  std::optional<std::map<uint64_t, std::string>> tickets_;  // none: all may tell
  uint64_t next_key_ = 1;
  std::map<WatcherId, std::vector<Watched>> watchers_;
  uint64_t next_watcher_ = 1;
  std::vector<Offender> offenders_;
  Time next_epoch_{};
};

}  // namespace cairn::view
