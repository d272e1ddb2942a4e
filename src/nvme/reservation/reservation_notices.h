// SPDX-License-Identifier: Apache-2.0
// ReservationNotices: what befell a host's reservations, until it has read it (log page 80h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "nvme/format/feature_format.h"
#include "nvme/format/limits.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {

class ReservationNotices {
 public:
  // Feature 82h, per namespace: a bit set keeps a kind of notice back.
  uint32_t mask(uint32_t nsid) const {
    const auto found = masks_.find(nsid);
    return found == masks_.end() ? 0 : found->second;
  }
  void set_mask(uint32_t nsid, uint32_t mask) { masks_[nsid] = mask; }

  // True: the host is to be told that there is something to read. The oldest gives way.
  bool add(uint32_t nsid, ReservationNotice type) {
    if ((mask(nsid) & 1u << static_cast<uint8_t>(type)) != 0) return false;
    if (unread_.size() == kReservationNoticesMax) unread_.pop_front();
    if (++count_ == 0) ++count_;
    unread_.push_back({.count = count_, .type = type, .nsid = nsid});
    return true;
  }
  // The oldest; an empty page when all were read.
  ReservationNoticePage page() const {
    ReservationNoticePage page;
    if (unread_.empty()) return page;
    page.count = unread_.front().count;
    page.type = unread_.front().type;
    page.nsid = unread_.front().nsid;
    page.available = static_cast<uint8_t>(unread_.size() - 1);
    return page;
  }
  // The oldest was read. True: there are more.
  bool pop() {
    if (!unread_.empty()) unread_.pop_front();
    return !unread_.empty();
  }
  void reset() {
    unread_.clear();
    masks_.clear();
    count_ = 0;
  }

 private:
  struct Notice {
    uint64_t count = 0;
    ReservationNotice type{};
    uint32_t nsid = 0;
  };
  static_assert(ReservationNoticeMask::kRegistrationPreempted ==
                1u << static_cast<uint8_t>(ReservationNotice::kRegistrationPreempted));
  static_assert(ReservationNoticeMask::kReservationPreempted ==
                1u << static_cast<uint8_t>(ReservationNotice::kReservationPreempted));
  static_assert(kReservationNoticesMax <= 256, "what is available fits its byte");

  std::deque<Notice> unread_;
  std::map<uint32_t, uint32_t> masks_;
  uint64_t count_ = 0;  // LPC
};

}  // namespace cairn::nvme
