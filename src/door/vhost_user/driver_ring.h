// SPDX-License-Identifier: Apache-2.0
// DriverRing: the other side of a virtqueue, as a guest's driver has it. For clients and tests that
// use a device without a guest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "door/vhost_user/chain.h"

namespace cairn::door::vhost_user {

struct DriverRingOptions {
  uint16_t size = 0;  // of descriptors; a power of two
  bool is_packed = false;
  bool has_event_index = false;
  // Where its parts lie: zeroed memory of room() bytes, which the device sees at `address`, both of
  // whole pages.
  MutableBytes memory;
  uint64_t address = 0;
};

// Where the device finds the parts.
struct DriverRingPlace {
  uint64_t descriptors = 0;
  uint64_t driver = 0;
  uint64_t device = 0;
};

// On one core. At most as many chains at once as it has descriptors.
class DriverRing {
 public:
  static size_t room(uint16_t size, bool is_packed);
  static std::unique_ptr<DriverRing> make(const DriverRingOptions& options);
  virtual ~DriverRing() = default;

  struct Done {
    uint64_t token = 0;
    uint32_t written = 0;
  };
  // A table in memory of the device's, for chains that take one descriptor of the ring.
  struct Table {
    MutableBytes bytes;
    uint64_t address = 0;
  };

  const DriverRingPlace& place() const { return place_; }
  // Makes a chain available. False: there is no room. With a table, the segments go there.
  virtual bool add(std::span<const Segment> segments, uint64_t token, const Table* table) = 0;
  // Whether the device wants to be told of what was added since the last time.
  virtual bool wants_kick() = 0;
  // The next chain that the device is done with.
  virtual std::optional<Done> take() = 0;
  // The device is to tell of the next that it is done with. True: there is one already.
  virtual bool want_call() = 0;
  size_t outstanding() const { return outstanding_; }
  // The device gave back what it was not given; take() gives nothing any more.
  bool is_broken() const { return is_broken_; }

 protected:
  DriverRingPlace place_;
  size_t outstanding_ = 0;
  bool is_broken_ = false;
};

}  // namespace cairn::door::vhost_user
