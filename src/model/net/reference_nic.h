// SPDX-License-Identifier: Apache-2.0
// Which flow of a host's port sends next, as the HPCC reference decides it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn::net {

// Flows stand in a list in the order in which they started, and take turns by their places. Those
// that are done leave it only when a search comes past them.
class ReferenceNic {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  bool wake_pending = false;  // a wake-up is under way; it is never moved

  bool empty() const { return flows_.empty(); }
  const std::vector<uint32_t>& flows() const { return flows_; }
  void add(uint32_t flow) { flows_.push_back(flow); }

  // The next flow after the last one that was taken for which may_send(flow); kNobody when there is
  // none. If the search met flows for which is_done(flow), it takes out all of those from the first
  // place of them on, and tells left(flow).
  template <class MaySend, class IsDone, class Left>
  uint32_t take_next(MaySend may_send, IsDone is_done, Left left) {
    const size_t count = flows_.size();
    size_t found = count;
    size_t first_done = count;
    for (size_t i = 1; i <= count; ++i) {
      const size_t place = (last_ + i) % count;
      if (may_send(flows_[place])) {
        found = place;
        break;
      }
      if (is_done(flows_[place]) && place < first_done) first_done = place;
    }
    if (first_done < count) {
      // Who was found moves down with the others.
      size_t to = first_done;
      for (size_t from = first_done; from < count; ++from) {
        const uint32_t flow = flows_[from];
        if (is_done(flow) && from != found) {
          left(flow);
          continue;
        }
        if (from == found) found = to;
        flows_[to++] = flow;
      }
      flows_.resize(to);
      if (found == count) return kNobody;
    }
    if (found == count) return kNobody;
    last_ = found;
    return flows_[found];
  }

 private:
  std::vector<uint32_t> flows_;
  size_t last_ = 0;  // the place that was taken last; taking out others does not move it
};

}  // namespace cairn::net
