// SPDX-License-Identifier: Apache-2.0
// Unanswered: changes that were sent to an HTTP server and never answered.
//
// Giving up a request does not undo it: it may wait in a buffer of the server, of a proxy or of the
// network, and be carried out at any time later. A request with a condition is carried out only
// while the object has the version that it had then. If each version of an object has an ETag of
// its own, that ends as soon as the object is changed; only "absent" can recur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rest/version.h"

namespace cairn::rest {

// The max number of remembered objects, and of changes of each.
inline constexpr size_t kUnansweredMax = 65536;
inline constexpr size_t kUnansweredPerObject = 8;

class Unanswered {
 public:
  struct Change {
    Version before;  // the object when it was sent
    bool is_removal = false;
    uint32_t checksum = 0;  // of what else it would become
  };

  void add(uint64_t object, Change change);
  // Whether there is one that may still change the object.
  bool has(uint64_t object) const;
  // Whether one of them explains that the object is now `found`, with that checksum.
  bool explains(uint64_t object, const Version& found, uint32_t checksum) const;
  // Whether one of them is carried out as soon as the object is absent: it must not become so.
  bool awaits_absence(uint64_t object) const;
  // The object was changed since: changes that were sent for another version have no effect now.
  void outdate(uint64_t object);
  // None of them can happen any more.
  void forget(uint64_t object) { objects_.erase(object); }

 private:
  struct Sent {
    bool awaits_absence = false;
    std::vector<Change> changes;
  };
  std::unordered_map<uint64_t, Sent> objects_;
  bool is_full_ = false;  // some were not remembered, and may concern any object
};

}  // namespace cairn::rest
