// SPDX-License-Identifier: Apache-2.0
#include "testing/guest/driver_queue.h"

#include "base/check.h"

namespace cairn::door::vfio_user {

namespace {

constexpr size_t kLastWord = sizeof(nvme::Cqe) - sizeof(uint32_t);

}  // namespace

DriverQueue::DriverQueue(const Rings& rings, const DriverDoorbells& doorbells)
    : rings_(rings), doorbells_(doorbells) {
  std::ranges::fill(rings_.completion.bytes, std::byte{0});
}

void DriverQueue::submit(const nvme::Sqe& sqe) {
  CHECK(!is_full(), "who submits has looked for room");
  std::memcpy(rings_.submission.bytes.data() + tail_ * sizeof sqe, &sqe, sizeof sqe);
  tail_ = static_cast<uint16_t>(tail_ + 1 == rings_.entries ? 0 : tail_ + 1);
  ++in_flight_;
}

void DriverQueue::ring() {
  if (tail_ == tail_before_) return;
  write(Doorbell::tail_of(rings_.id), tail_before_, tail_);
  tail_before_ = tail_;
}

bool DriverQueue::has_completion() const {
  const std::byte* const entry = rings_.completion.bytes.data() + head_ * sizeof(nvme::Cqe);
  return nvme::bit<16>(env::load_shared<uint32_t>(entry + kLastWord)) == phase_;
}

nvme::Cqe DriverQueue::take() {
  const auto cqe = load<nvme::Cqe>(rings_.completion.bytes.subspan(head_ * sizeof(nvme::Cqe)));
  head_ = static_cast<uint16_t>(head_ + 1 == rings_.entries ? 0 : head_ + 1);
  if (head_ == 0) phase_ = !phase_;
  if (in_flight_ > 0) --in_flight_;
  return cqe;
}

void DriverQueue::write(Doorbell doorbell, uint16_t before, uint16_t now) {
  if (!doorbells_.shadow.empty() && !doorbell.is_admin()) {
    env::store_shared<uint32_t>(doorbells_.shadow.data() + doorbell.offset(), now);
    // The device writes its event index and looks at the shadow once more; this is the other half.
    env::shared_fence();
    const auto event = static_cast<uint16_t>(
        env::load_shared<uint32_t>(doorbells_.events.data() + doorbell.offset()));
    const auto beyond = static_cast<uint16_t>(now - event - 1);
    if (beyond >= static_cast<uint16_t>(now - before)) return;
  }
  if (doorbells_.page.empty()) return doorbells_.send(doorbell, now);
  env::store_shared<uint32_t>(doorbells_.page.data() + doorbell.offset(), now);
}

}  // namespace cairn::door::vfio_user
