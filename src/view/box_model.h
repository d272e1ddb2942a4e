// SPDX-License-Identifier: Apache-2.0
// BoxModel: the five kinds of components of a box and the flows through them, made of what clients
// tell of their requests (Flint, sections 3.2 and 3.3).
//
// What one client says weighs little against the others: it cannot have had more than its port
// carries, what it says beyond that is refused; a delay is the lower median of what the clients of
// a component say, so one of two cannot make it longer, and one of three can neither way; a drive
// is congested by delays, not by claims of traffic.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "view/drive_estimate.h"
#include "view/sliding.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

// A client of a controller; not used again.
using ClientKey = Id<struct ClientKeyTag>;

// Whose request it was.
struct Origin {
  ClientKey key;
  const std::string& client;
  const SessionInfo& session;
};

// What a volume does at a drive.
struct DriveUse {
  std::string volume;
  ComponentId drive;
  uint64_t read_bytes_per_s = 0;
  uint64_t write_bytes_per_s = 0;
};

class BoxModel {
 public:
  static constexpr size_t kFlowsPerClient = 512;

  // The spec is sound (check_box).
  BoxModel(BoxId id, BoxSpec spec);

  enum class Verdict : uint8_t {
    kCounted,  // in its five components and its flow
    kLate,     // too old to say anything about now
    kRefused,  // there is no such drive or port, or it cannot be true
  };
  // `stamp` is when it was done, on the clock of `now`.
  Verdict add(const Origin& origin, const IoVector& vector, Time stamp, Time now);

  // Estimates what drives can do, once an epoch, and ages averages. Called before anything is read
  // at a new time.
  void advance(Time now);

  const BoxSpec& spec() const { return spec_; }
  bool has(ComponentId id) const;
  uint64_t recency(ComponentId id) const { return components_[index_of(id)].recency; }
  ComponentView component(ComponentId id, Time now) const;
  const DriveView& drive(uint16_t index) const { return estimates_[index].view(); }
  // Appends all, ascending; and what flowed in the window.
  void append_components(Time now, std::vector<ComponentView>& to) const;
  void append_flows(Time now, std::vector<FlowView>& to) const;
  void append_uses(Time now, std::vector<DriveUse>& to) const;
  // Whether it has something in the window there.
  bool uses(ClientKey client, ComponentId id) const;

 private:
  struct Sum {
    uint64_t ops = 0;
    uint64_t bytes = 0;
    std::array<uint32_t, kSizeClasses> sizes{};
    Sum& operator+=(const Sum& other);
  };
  struct Component {
    uint64_t recency = 0;
    std::array<Sliding<Sum>, kDirections> sums;
    std::array<Ewma, kDirections> bytes;
    std::array<Ewma, kDirections> ops;
  };
  struct FlowSum {
    std::array<Sum, 2> types;  // by IoType
    std::array<int64_t, 2> delay_ns{};
    std::array<uint32_t, kRttBuckets> rtts{};
    FlowSum& operator+=(const FlowSum& other);
  };
  struct FlowKey {
    ClientKey client;
    SessionId session;
    uint16_t drive = 0;
    friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
  };
  struct Flow {
    std::string client;
    std::string volume;
    uint16_t port = 0;
    Sliding<FlowSum> sums;
  };
  struct Bytes {
    uint64_t bytes = 0;
    Bytes& operator+=(const Bytes& other) { return bytes += other.bytes, *this; }
  };
  // A flow's means of the window, as estimates need them.
  struct Mean {
    ClientKey client;
    uint16_t port = 0;
    uint16_t drive = 0;
    std::array<uint64_t, 2> bytes_per_s{};
    std::array<std::optional<Duration>, 2> delays;
  };

  size_t index_of(ComponentId id) const;
  uint64_t capacity_of(ComponentId id) const;
  bool is_at_limit(ComponentId id, Direction direction, Time now) const;
  Duration without_transfer(const IoVector& vector) const;
  Flow* flow_of(const Origin& origin, uint16_t drive);
  static Traffic traffic(const Sum& sum);
  std::vector<Mean> means(Time now) const;
  void estimate(Time now);
  void estimate_pipes(const std::vector<Mean>& means, Time now);
  void forget_flows(Time now);

  const BoxId id_;
  const BoxSpec spec_;
  std::vector<Component> components_;
  std::vector<DriveEstimate> estimates_;
  std::vector<std::array<Duration, kDirections>> pipe_delays_;  // of NetPipes
  std::map<FlowKey, Flow> flows_;
  std::map<ClientKey, size_t> flow_counts_;
  std::map<std::pair<ClientKey, uint16_t>, Sliding<Bytes>> carried_;  // of clients by ports
  Time next_epoch_{};
  Time next_fold_{};
};

// Of several the middle one, of an even number the lower of two. Not empty.
Duration lower_median(std::vector<Duration> values);

}  // namespace cairn::view
