// SPDX-License-Identifier: Apache-2.0
// View: how boxes are doing, as a value. A controller makes it; agents hold parts of it; analyses
// and texts are functions of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "view/types.h"

namespace cairn::view {

// What passed in the window.
struct Traffic {
  uint64_t bytes_per_s = 0;
  uint64_t ops_per_s = 0;
  std::array<uint32_t, kSizeClasses> sizes{};  // requests, not in a second
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
struct ComponentTraffic {
  Traffic now;
  uint64_t average_bytes_per_s = 0;  // moving, over windows
  uint64_t average_ops_per_s = 0;
  friend bool operator==(const ComponentTraffic&, const ComponentTraffic&) = default;
};

// What a drive seems to be able to do. Bytes that are written count as many times as the write cost
// says: that is what "weighted" means.
struct DriveView {
  Duration read_delay{};         // beyond the time that the bytes themselves need
  Duration write_delay{};        // the same
  uint64_t rate = 0;             // weighted bytes in a second that it seems to sustain
  uint64_t used = 0;             // of these
  uint64_t headroom = 0;         // what is left
  uint32_t write_cost_x10 = 10;  // 10 to 90
  int32_t busy = 0;              // used of used and headroom, in thousandths
  int32_t fragmentation = 0;     // how far the write cost is from its least, in thousandths
  bool is_congested = false;
  friend bool operator==(const DriveView&, const DriveView&) = default;
};

struct ComponentView {
  ComponentId id;
  uint64_t recency = 0;   // counts the requests that changed it
  uint64_t capacity = 0;  // bytes in a second in each direction
  std::array<ComponentTraffic, kDirections> traffic{};
  Duration delay{};  // that requests wait there
  std::optional<DriveView> drive{};
  friend bool operator==(const ComponentView&, const ComponentView&) = default;
};

// Round trips of a bucket.
struct RttCount {
  uint8_t bucket = 0;
  uint32_t count = 0;
  friend bool operator==(const RttCount&, const RttCount&) = default;
};

// What a session does at a drive.
struct FlowView {
  std::string client;
  std::string volume;
  SessionId session;
  BoxId box;
  uint16_t port = 0;
  uint16_t drive = 0;
  Traffic reads;
  Traffic writes;
  Duration delay{};            // mean of its requests, beyond the time that their bytes need
  std::vector<RttCount> rtts;  // by bucket, ascending
  friend bool operator==(const FlowView&, const FlowView&) = default;
};

// A volume whose client does not keep to its share of drives, or hides what it does.
struct Offender {
  enum class Offence : uint8_t {
    kTakesMore,       // of a drive than it was granted
    kAsksForNothing,  // and uses a drive that others share out
    kTellsNothing,    // of its requests
  };
  std::string volume;
  std::string client;
  Offence offence = Offence::kTakesMore;
  ComponentId drive;     // but of kTellsNothing
  uint64_t used = 0;     // of it, weighted bytes in a second
  uint64_t granted = 0;  // of these
  friend bool operator==(const Offender&, const Offender&) = default;
};

struct BoxView {
  std::string name;
  uint32_t ports = 0;
  std::vector<std::string> drives;
  friend bool operator==(const BoxView&, const BoxView&) = default;
};

struct View {
  uint64_t controller = 0;  // its incarnation: another one counts from the beginning
  Time at;                  // on its clock
  std::vector<BoxView> boxes;
  std::vector<ComponentView> components;  // ascending
  std::vector<FlowView> flows;
  std::vector<Offender> offenders;
  friend bool operator==(const View&, const View&) = default;

  // Null: it is not in it.
  const ComponentView* find(ComponentId id) const;
  // "b1/d7", "b1/port3", "b1/netpipe3", "b1/ioport3", "b1/iopipe7".
  std::string name_of(ComponentId id) const;
};

}  // namespace cairn::view
