// SPDX-License-Identifier: Apache-2.0
// What agents and the controller say to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

inline constexpr size_t kSyncMax = 1024;     // components of one SyncRequest
inline constexpr size_t kWatchesMax = 1024;  // of one client

// Who the agent is and which sessions it has now: all of them, each time.
struct AttachRequest {
  std::string client;        // by which name; of those with a key it stands behind the key's
  uint64_t incarnation = 0;  // of the agent: another start has another
  std::vector<SessionInfo> sessions;
};
struct AttachedSession {
  SessionId id;
  BoxId box;
};
struct AttachReply {
  uint64_t controller = 0;     // its incarnation
  uint64_t number = 0;         // of the last batch that it counted of this agent
  std::vector<BoxView> boxes;  // by BoxId
  std::vector<AttachedSession> sessions;
};

// A batch. One that was not answered is sent again under its number.
struct ReportRequest {
  std::string client;
  uint64_t controller = 0;  // that the agent attached to
  uint64_t incarnation = 0;
  uint64_t number = 0;   // 1, 2, ... of this incarnation at this controller
  Time sent;             // on the agent's clock, each time anew
  uint64_t dropped = 0;  // vectors since the agent started that nobody took in time
  std::vector<IoVector> vectors;
};
struct Recency {
  ComponentId id;
  uint64_t counter = 0;
  uint32_t own = 0;  // how often the batch itself counted
  friend bool operator==(const Recency&, const Recency&) = default;
};
struct ReportReply {
  uint64_t number = 0;
  uint32_t late = 0;     // vectors that were too old
  uint32_t refused = 0;  // that make no sense
  std::vector<Recency> changed;
};

struct SyncRequest {
  std::vector<ComponentId> components;
};
struct SyncReply {
  uint64_t controller = 0;
  Time at;
  std::vector<ComponentView> components;  // those that there are
};

struct QueryRequest {
  std::string volume;  // its flows only, and what they pass; empty: all
};

// Tells when a drive has less headroom than so many thousandths of what it reads at most, and when
// it has that and a twentieth more again.
struct Watch {
  ComponentId drive;
  uint32_t below = 100;
  friend bool operator==(const Watch&, const Watch&) = default;
};
struct WatchRequest {
  std::vector<Watch> watches;
};
struct Event {
  Watch watch;
  bool is_below = false;
  uint64_t crossings = 0;  // of this watch, this one included
  ComponentView now;
};

}  // namespace cairn::view
