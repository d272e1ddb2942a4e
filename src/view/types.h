// SPDX-License-Identifier: Apache-2.0
// What a box is made of, as its users know it from outside, and what they tell of each request.
//
// A box is modelled as two switches (Flint, section 3.2). N ports of Ethernet, each with a NetPipe
// to an I/O port behind it; M drives, each with an IOPipe before it. A request that comes in by
// port p for drive d passes five components: port p, NetPipe p, I/O port p, IOPipe d and drive d.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"

namespace cairn::view {

// A box of a controller, by its place in the controller's list.
using BoxId = Id<struct BoxIdTag, uint16_t>;
// A client's connection to a port of a box. The client chooses the number; only its own vectors
// can name it.
using SessionId = Id<struct SessionIdTag, uint32_t>;

inline constexpr size_t kBoxesMax = 64;
inline constexpr uint32_t kPortsMax = 256;    // of a box
inline constexpr uint32_t kDrivesMax = 1024;  // of a box
inline constexpr size_t kClientsMax = 1024;   // of a controller
inline constexpr size_t kSessionsMax = 1024;  // of a client
inline constexpr size_t kFlowsMax = 4096;     // sessions and the drives they use, of a box
inline constexpr size_t kNameMax = 64;        // of a box, a drive, a client or a volume
inline constexpr uint32_t kIoBytesMax = 64U << 20;
inline constexpr Duration kRttMax = 60_s;

// A batch of vectors is sent when there are so many, or when the oldest has waited so long.
inline constexpr size_t kBatchMax = 128;
inline constexpr Duration kBatchAge = 100_ms;

enum class Kind : uint8_t { kPort, kNetPipe, kIoPort, kIoPipe, kDrive };
inline constexpr size_t kKinds = 5;

// Submission and completion. What is written passes a box on the way in, what is read on the way
// out; a request counts in both, its bytes in one.
enum class Direction : uint8_t { kIngress, kEgress };
inline constexpr size_t kDirections = 2;

enum class IoType : uint8_t { kRead, kWrite };

struct ComponentId {
  BoxId box;
  Kind kind = Kind::kPort;
  uint16_t index = 0;
  friend constexpr auto operator<=>(const ComponentId&, const ComponentId&) = default;
};

// What a client tells of a request that is done.
struct IoVector {
  SessionId session;
  uint16_t drive = 0;  // of the session's box
  IoType type = IoType::kRead;
  uint32_t bytes = 0;
  Duration rtt;    // from when it was sent to the box until the box had answered
  Time completed;  // on the client's clock
  friend bool operator==(const IoVector&, const IoVector&) = default;
};

struct SessionInfo {
  SessionId id;
  std::string volume;
  std::string box;
  uint16_t port = 0;
  // By which the client shows that it has the volume open; 0: it has none.
  uint64_t ticket = 0;
  friend bool operator==(const SessionInfo&, const SessionInfo&) = default;
};

// What is known of a drive beforehand, from a data sheet or a fit (`cairn plan fit`).
struct DriveProfile {
  uint64_t bytes_per_s = 2'000'000'000;  // that it reads at most
  friend bool operator==(const DriveProfile&, const DriveProfile&) = default;
};
struct DriveSpec {
  std::string name;
  DriveProfile profile;
  friend bool operator==(const DriveSpec&, const DriveSpec&) = default;
};
struct BoxSpec {
  std::string name;
  uint32_t ports = 1;
  uint64_t port_bytes_per_s = 12'500'000'000;  // in each direction; its NetPipe the same
  std::vector<DriveSpec> drives;
  friend bool operator==(const BoxSpec&, const BoxSpec&) = default;
};

// kInvalid, with the first thing that is wrong.
Result<void> check_box(const BoxSpec& box);
bool is_sound_name(const std::string& name);

// The five components of a request.
constexpr std::array<ComponentId, kKinds> path_of(BoxId box, uint16_t port, uint16_t drive) {
  return {{{box, Kind::kPort, port},
           {box, Kind::kNetPipe, port},
           {box, Kind::kIoPort, port},
           {box, Kind::kIoPipe, drive},
           {box, Kind::kDrive, drive}}};
}

// Requests by their size: up to 4 KiB, 8, 16, ... 256 KiB, and more.
inline constexpr size_t kSizeClasses = 8;
size_t size_class(uint32_t bytes);
// "128 KiB"; of the last "more than 256 KiB".
std::string size_class_text(size_t size_class);

// Round trips in buckets a quarter of a power of two wide, from 16 us on; the first and the last
// hold what is beyond.
inline constexpr size_t kRttBuckets = 88;
size_t rtt_bucket(Duration rtt);
// A time that is in the bucket: its upper end.
Duration rtt_of_bucket(size_t bucket);

}  // namespace cairn::view
