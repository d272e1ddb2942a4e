// SPDX-License-Identifier: Apache-2.0
// What hosts that nobody knows send to a box, to keep it from those it knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::bench {

enum class StrangerKind : uint8_t {
  kSilent,     // sends nothing
  kGreeting,   // sends ICReq and stops
  kDiscovery,  // asks the discovery service for data that it never sends or reads
  kGarbage,    // sends random bytes
  kGreetingGarbage,
};
inline constexpr uint32_t kStrangerKinds = 5;

// The admin commands that a kDiscovery stranger sends at once.
inline constexpr uint16_t kStrangerCommands = 24;

struct StrangerScript {
  std::vector<std::byte> opening;  // once connected, without waiting for any answer
  std::vector<std::byte> again;    // on each of its later turns; may be empty
};

// Number `index` of the strangers; their kinds take turns.
constexpr StrangerKind stranger_kind(uint32_t index) {
  return static_cast<StrangerKind>(index % kStrangerKinds);
}
StrangerScript stranger_script(StrangerKind kind);

}  // namespace cairn::bench
