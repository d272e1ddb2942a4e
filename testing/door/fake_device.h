// SPDX-License-Identifier: Apache-2.0
// A device that a page explains: enough to try out everything a session does around one.
//
// Registers are 4 KiB that read as written. Bit 0 of the word at 0x14 enables it. A new value of
// the first doorbell makes it copy: at the address in register 0x28 it finds an Order, and when the
// copy is done it raises the vector that the order names.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"
#include "env/shared_word.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::door::vfio_user {

inline constexpr uint64_t kEnableAt = 0x14;
inline constexpr uint64_t kOrderAt = 0x28;
inline constexpr Duration kDelayMax = 86400_s;

struct Order {
  Le64 from;
  Le64 to;
  Le32 length;
  Le32 vector;
  Le64 delay_ns;
};
static_assert(sizeof(Order) == 32);

class FakeDevice final : public Device {
 public:
  // `farewell`: how long it takes to end.
  explicit FakeDevice(DeviceParts parts, Duration farewell = {})
      : parts_(std::move(parts)), farewell_(farewell) {}

  void read(uint64_t offset, MutableBytes into) override {
    std::ranges::copy(Bytes(registers_).subspan(offset, into.size()), into.begin());
  }
  void write(uint64_t offset, Bytes from) override {
    std::ranges::copy(from, registers_.begin() + static_cast<ptrdiff_t>(offset));
  }
  bool is_enabled() const override {
    return (load<uint32_t>(Bytes(registers_).subspan(kEnableAt)) & 1) != 0;
  }
  bool is_busy() const override { return in_flight_ > 0; }
  bool poll() override {
    const auto rung = env::load_shared<uint32_t>(parts_.doorbells.data());
    if (is_paused_ || rung == seen_) return false;
    seen_ = rung;
    gate_.spawn(copy(load<uint64_t>(Bytes(registers_).subspan(kOrderAt))));
    return true;
  }
  void abandon(uint64_t, uint64_t) override {
    auto stop = std::exchange(stop_, std::make_unique<task::CancelSource>());
    stop->request();
    old_.push_back(std::move(stop));
  }
  void note_writes() override {
    for (const Order* const order : running_) parts_.memory.note_write(order->to, order->length);
  }
  task::Task<void> reset() override {
    abandon(0, 0);
    co_await idle();
    registers_.fill(std::byte{0});
    seen_ = 0;
    is_paused_ = false;
  }
  task::Task<void> pause() override {
    is_paused_ = true;
    co_await idle();
  }
  void resume() override { is_paused_ = false; }
  Result<std::vector<std::byte>> save() override {
    std::vector<std::byte> state(registers_.begin(), registers_.end());
    state.resize(registers_.size() + sizeof(seen_));
    store(MutableBytes(state).subspan(registers_.size()), seen_);
    return state;
  }
  Result<void> load_state(Bytes state) {
    if (state.size() != registers_.size() + sizeof(seen_)) {
      return fail(Errc::kCorrupt, "no state of this device");
    }
    std::ranges::copy(state.first(registers_.size()), registers_.begin());
    seen_ = cairn::load<uint32_t>(state.subspan(registers_.size()));
    return {};
  }
  Result<void> load(Bytes state) override { return load_state(state); }
  task::Task<void> close() override {
    is_paused_ = true;
    abandon(0, 0);
    co_await gate_.close();
    if (farewell_.ns == 0) co_return;
    const Result<void> waited = co_await task::sleep_for(parts_.env, farewell_);
    CHECK(waited.has_value(), "nobody cancels this wait");
  }

 private:
  template <class T>
  static T load(Bytes from) {
    return cairn::load<T>(from);
  }
  task::Task<void> idle() {
    while (in_flight_ > 0) {
      ended_.reset();
      const Result<void> one = co_await ended_.wait();
      if (!one) co_return;
    }
  }
  task::Task<void> copy(uint64_t at) {
    ++in_flight_;
    co_await copy_one(at);
    --in_flight_;
    ended_.set();
  }
  task::Task<void> copy_one(uint64_t at) {
    const door::GuestMemory::Piece order_at = parts_.memory.find(at, sizeof(Order), false);
    if (!order_at.is_valid()) co_return;
    const auto order = cairn::load<Order>(order_at.bytes);
    const auto from = parts_.memory.find(order.from, order.length, false);
    const auto to = parts_.memory.find(order.to, order.length);
    if (!from.is_valid() || !to.is_valid()) co_return;
    const Result<void> in_from = from.region->users().enter();
    const Result<void> in_to = to.region->users().enter();
    const Duration delay{static_cast<int64_t>(std::min<uint64_t>(order.delay_ns, kDelayMax.ns))};
    running_.insert(&order);
    const Result<void> waited = co_await task::sleep_for(parts_.env, delay, stop_->token());
    if (waited) std::ranges::copy(from.bytes, to.bytes.begin());
    running_.erase(&order);
    if (in_to) to.region->users().leave();
    if (in_from) from.region->users().leave();
    if (waited) parts_.raise(static_cast<uint16_t>(order.vector));
  }

  DeviceParts parts_;
  Duration farewell_;
  std::array<std::byte, kDoorbellsAt> registers_{};
  uint32_t seen_ = 0;
  bool is_paused_ = false;
  size_t in_flight_ = 0;
  std::set<const Order*> running_;
  std::unique_ptr<task::CancelSource> stop_ = std::make_unique<task::CancelSource>();
  std::vector<std::unique_ptr<task::CancelSource>> old_;
  task::Event ended_;
  task::Gate gate_;
};

inline task::Task<Result<std::unique_ptr<Device>>> make_fake(DeviceParts parts) {
  co_return std::make_unique<FakeDevice>(std::move(parts));
}

}  // namespace cairn::door::vfio_user
