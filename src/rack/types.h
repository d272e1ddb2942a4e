// SPDX-License-Identifier: Apache-2.0
// What boxes with spare space and those who need it speak about: amounts, offers, contracts,
// drives; and their limits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace cairn::rack {

inline constexpr size_t kBoxNameMax = 128;    // bytes
inline constexpr size_t kShelfNameMax = 64;   // likewise
inline constexpr size_t kDriveNameMax = 64;   // likewise
inline constexpr size_t kLegsMax = 8;         // drives that one is made of
inline constexpr size_t kContractsMax = 512;  // of one box
inline constexpr uint64_t kUnit = 1_MiB;      // space is given in multiples of it
inline constexpr uint64_t kBytesMax = uint64_t{1} << 56;

// Space, and what may be done with it in a second. Of a contract, zero requests or bytes: none are
// promised, and none are refused.
struct Amount {
  uint64_t bytes = 0;
  uint64_t iops = 0;
  uint64_t bandwidth = 0;  // bytes per second

  bool fits(const Amount& room) const {
    return bytes <= room.bytes && iops <= room.iops && bandwidth <= room.bandwidth;
  }
  friend bool operator==(const Amount&, const Amount&) = default;
};

// Where a box is reached and which of its subsystems is meant.
struct Endpoint {
  std::string address;  // env::Address::parse takes it; not a local one
  std::string nqn;
  bool tls = false;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// What a box could give of one shelf, as it said some time ago: a hint, not a promise.
struct Offer {
  std::string box;
  std::string shelf;
  Endpoint place;
  Amount spare;
  uint64_t expires_ms = 0;  // of the box's wall clock, since 1970
  friend bool operator==(const Offer&, const Offer&) = default;
};

// Drawn by who asks for the space; also the UUID of the namespace that is made for it.
using ContractId = std::array<uint8_t, 16>;

// Space that a box has given to somebody, and keeps for them until they release it.
struct Contract {
  ContractId id{};
  std::string nqn;    // the subsystem it is served by
  std::string owner;  // a host's NQN
  std::string drive;  // whose record confirms it
  std::string shelf;
  Amount amount;
  uint32_t nsid = 0;
  bool is_confirmed = false;  // else it is given back at the end of its term
  friend bool operator==(const Contract&, const Contract&) = default;
};

// What a box is asked.
struct SpaceRequest {
  enum class Verb : uint8_t {
    kReserve = 1,
    kRelease = 2,       // refused while its owner is connected
    kMayRelease = 3,    // what kRelease would say now; nothing changes
    kForceRelease = 4,  // whoever is connected
  };
  Verb verb = Verb::kReserve;
  ContractId id{};
  std::string drive;
  std::string shelf;
  Amount amount;
  friend bool operator==(const SpaceRequest&, const SpaceRequest&) = default;
};

enum class Raid : uint8_t { kStripe = 0, kMirror = 1 };

// A contract as its drive knows it.
struct Leg {
  ContractId id{};
  std::string box;
  std::string shelf;
  Endpoint place;
  Amount amount;
  uint32_t nsid = 0;
  friend bool operator==(const Leg&, const Leg&) = default;
};

// A drive made of space in the rack. While its record is in the store, the contracts of its legs
// are confirmed.
struct DriveRecord {
  std::string name;
  Raid raid = Raid::kStripe;
  uint64_t bytes = 0;       // as asked for
  std::string owner;        // the host NQN that its contracts are made with
  std::string connect;      // options of a URI for every leg: keys for instance
  bool is_leaving = false;  // it is being given back: not to be used any more
  std::vector<Leg> legs;    // those not given back yet; in the order of the stack
  friend bool operator==(const DriveRecord&, const DriveRecord&) = default;
};

// kInvalid: what is wrong. A drive's name is letters, digits, '.', '_' and '-'; a shelf's too; a
// box's also has ':', '[' and ']', so that it may be an address.
Result<void> check_drive_name(std::string_view name);
Result<void> check_shelf_name(std::string_view name);
Result<void> check_box_name(std::string_view name);
// Of those who use the metadata, by which their keys are known: as a box's.
Result<void> check_client_name(std::string_view name);
// At least a unit, in whole units.
Result<void> check_amount(const Amount& amount);
Result<void> check_place(const Endpoint& place);

}  // namespace cairn::rack
