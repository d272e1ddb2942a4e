// SPDX-License-Identifier: Apache-2.0
// An iteration as bytes: what an interrupted run goes on from. One file each, little-endian:
//
//   Header
//   storage arrival, storage departure, network arrival, network departure: int64 for each request
//   network facts: pauses at hosts, pauses at switches, marks, drops, data packets, events, bin
//   spine pauses, read bytes, write bytes: their number, then each, uint64
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "snis/iteration.h"

namespace cairn::snis {

inline constexpr uint64_t kStateMagic = 0x4c53494e53524143;  // "CARSNISL"
inline constexpr uint32_t kStateVersion = 1;

struct StateHeader {
  uint64_t magic = kStateMagic;
  uint32_t version = kStateVersion;
  uint32_t iteration = 0;
  uint64_t fingerprint = 0;  // of everything that decides the result
  uint64_t requests = 0;
  uint64_t body_bytes = 0;
  uint32_t body_crc32c = 0;
  uint32_t header_crc32c = 0;  // of the bytes before it
};
static_assert(sizeof(StateHeader) == 48);

// Requests, and `description` of the system: whatever else decides what they meet.
uint64_t fingerprint(std::span<const trace::Record> requests, std::string_view description);

struct StateKey {
  uint32_t iteration = 0;
  uint64_t fingerprint = 0;
  uint64_t requests = 0;
};
std::string encode_state(const Iteration& iteration, const StateKey& key);
// kCorrupt: not such a file, or damaged; kUnsupported: of another version; kMismatch: of another
// iteration, trace or system.
Result<Iteration> decode_state(std::string_view bytes, const StateKey& key);

}  // namespace cairn::snis
