// SPDX-License-Identifier: Apache-2.0
// Auction: who may use how much of each drive, epoch by epoch (Flint, section 4.6 and Algorithm 4).
// No I/O.
//
// A drive's weighted bytes of an epoch are shared by deficit round robin: each round every tenant
// that wants something may have a quantum, by its weight, and keeps what it could not use for the
// next round. A tenant is granted room on the drive, on the drive's IOPipe and on its NetPipe
// together, or none: who is held up by a full NetPipe is passed over, and the drive's share of it
// goes to others. Floors are served before all else, and caps end a tenant's rounds.
//
// What nobody wants at the beginning of an epoch is granted at once when it is asked for. What was
// granted and not used comes back when its tenant says so, at the latest in the next epoch, to
// those who wait. A tenant that comes when all is granted, or wants its share only then, is lent
// that of the rest of the epoch. One that wanted it from the beginning is not: who asks first would
// be lent what all pay back.
//
// An auction that starts does not know what clients are doing: it listens for one epoch, in which
// they go on by themselves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "base/units.h"
#include "share/slice_messages.h"
#include "share/types.h"

namespace cairn::share {

// What a volume was promised. Floor and cap are bytes in a second, not weighted; 0 is none.
struct Terms {
  uint32_t weight = 1;
  uint64_t floor = 0;
  uint64_t cap = 0;
  friend bool operator==(const Terms&, const Terms&) = default;
};
inline constexpr uint32_t kWeightMax = 1000;
inline constexpr uint64_t kRateMax = uint64_t{1} << 50;
// kInvalid: a weight is 1 to kWeightMax, rates are at most kRateMax, a cap is no less than a floor.
Result<void> check_terms(const Terms& terms);

using TenantId = Id<struct TenantIdTag>;

class Auction {
 public:
  static constexpr uint64_t kQuantum = 128_KiB;  // for a weight of 1
  static constexpr uint64_t kQuantumMin = 4_KiB;
  // Of what drives and ports can do, so much may be promised by floors.
  static constexpr uint64_t kFloorsPercent = 90;

  Auction(uint64_t incarnation, Time now) : incarnation_(incarnation), ends_(now + kEpoch) {}

  // What it can do from the next epoch on. `guaranteed`: bytes in a second, not weighted, that it
  // does whatever they are: floors are promised of that.
  struct DriveRates {
    std::string name;
    uint64_t rate = 0;  // weighted bytes in a second
    uint64_t pipe = 0;  // of its IOPipe, in each direction
    uint64_t guaranteed = 0;
  };
  void set_drive(DriveId id, DriveRates rates);
  void set_port(PortId id, std::string name, uint64_t bytes_per_s);

  // A drive that a volume has something on, and the port by which its client reaches it.
  struct DrivePath {
    DriveId drive;
    PortId port;
  };
  static std::vector<DrivePath> behind(PortId port, const std::vector<DriveId>& drives);

  // Whether terms can be kept, beside those of others. The Problem names what cannot.
  Attempt<void> check(std::string_view volume, const Terms& terms,
                      const std::vector<DrivePath>& paths) const;
  // Somebody opened the volume. An older opening of it ends: what that was granted is not granted
  // again, nor counted as unused. The drives and the ports are known.
  Attempt<TenantId> open(std::string volume, const Terms& terms,
                         const std::vector<DrivePath>& paths);
  // While it is in use.
  Attempt<void> change(std::string_view volume, const Terms& terms);
  void close(TenantId id);

  // kNotFound: there is no such tenant, or it has nothing on that drive.
  Result<SliceGrant> request(TenantId id, const SliceRequest& request, Time now);
  // Ends the epoch, if it is over.
  void advance(Time now);
  // How many tenants want something of the drive, or did so lately.
  size_t active(DriveId id) const;

  enum class State : uint8_t { kActive, kDeferred, kIdle };
  struct Standing {
    std::string volume;
    DriveId drive;
    State state = State::kIdle;
    uint64_t granted = 0;
    uint64_t wanted = 0;
  };
  std::vector<Standing> standings() const;
  // Several want something of the drive, and one of them more than it was granted.
  bool is_short(DriveId id) const;
  // What was granted in this epoch, where it was something.
  struct Granted {
    TenantId tenant;
    DriveId drive;
    uint64_t weighted = 0;
  };
  std::vector<Granted> granted() const;
  // Whether the next advance() ends the epoch.
  bool is_over(Time now) const { return now >= ends_; }
  uint64_t epoch() const { return epoch_; }
  // Floors that were not met in the last epoch, though wanted: drives do less than they promised.
  uint64_t missed_floors() const { return missed_floors_; }

 private:
  enum Part : uint8_t { kNetPipe, kIoPipe, kDrivePart, kParts };
  // Room of an epoch, in both directions; may be less than nothing.
  struct Pipe {
    uint64_t rate = 0;
    std::array<int64_t, 2> left{};
    void refill();
  };
  struct Tenant;
  struct Member {
    Tenant* tenant = nullptr;
    PortId port;
    State state = State::kIdle;
    uint64_t heard = 0;         // the epoch of its last word
    uint64_t next = 0;          // wanted of the next epoch
    uint64_t limit = 0;         // wanted of this one, all in all
    uint64_t limit_before = 0;  // when the epoch began
    uint64_t granted = 0;       // in this one
    uint64_t given_back = 0;
    uint64_t granted_before = 0;
    uint64_t given_before = 0;
    uint64_t ahead = 0;                  // of what it would have by its weight: its floor
    bool is_settled = true;              // what it did not use of that came back
    std::array<uint64_t, 2> permille{};  // in, out
    std::array<uint64_t, kParts> deficit{};
  };
  struct Drive {
    DriveRates rates;
    int64_t left = 0;
    Pipe pipe;
    std::vector<Member*> members;
    size_t first = 0;  // of a round
  };
  struct Port {
    std::string name;
    Pipe pipe;
  };
  struct Tenant {
    std::string volume;
    Terms terms;
    std::map<DriveId, Member> members;
    int64_t cap_left = 0;  // bytes of this epoch
  };

  static int64_t of_epoch(uint64_t bytes_per_s);
  static uint64_t bytes_of(const Member& member, uint64_t weighted);
  static uint64_t weighted_of(const Member& member, uint64_t bytes);

  void begin_epoch();
  // Sharing out an epoch (auction_rounds.cc).
  void serve_floors();
  // Rounds of these drives, until nobody who wants something can have any.
  void share_out(const std::vector<Drive*>& drives);
  bool visit(Drive& drive, Member& member, uint64_t quantum);
  // On the way to the drive, and below the cap; `lent`: with half of the next epoch.
  uint64_t room_for(const Drive& drive, const Member& member, bool lent) const;
  void grant(Drive& drive, Member& member, uint64_t weighted);
  void take_back(Drive& drive, Member& member, uint64_t weighted);
  void settle(Drive& drive, Member& member, const SliceRequest& request);
  uint64_t fair_share(const Drive& drive, const Member& member, Time now) const;
  void lend(Drive& drive, Member& member, Time now);
  uint64_t quantum_of(const Drive& drive) const;
  void leave(Tenant& tenant);

  const uint64_t incarnation_;
  Time ends_;
  uint64_t epoch_ = 1;
  bool is_learning_ = true;
  uint64_t missed_floors_ = 0;
  std::map<DriveId, Drive> drives_;
  std::map<PortId, Port> ports_;
  std::map<TenantId, Tenant> tenants_;  // members point into it
  uint64_t next_tenant_ = 1;
};

}  // namespace cairn::share
