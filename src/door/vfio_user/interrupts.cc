// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/interrupts.h"

#include <algorithm>
#include <utility>

namespace cairn::door::vfio_user {

namespace {

constexpr uint32_t kDataMask = kIrqDataNone | kIrqDataBool | kIrqDataEventfd;
constexpr uint32_t kActionMask = kIrqActionMask | kIrqActionUnmask | kIrqActionTrigger;

bool is_one_bit(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Of the state for a successor.
constexpr uint8_t kSavedMasked = 1 << 0;
constexpr uint8_t kSavedInTable = 1 << 1;
constexpr uint8_t kSavedPending = 1 << 2;

}  // namespace

Result<IrqInfo> Interrupts::info(uint32_t index) {
  IrqInfo info{.argsz = uint32_t{sizeof(IrqInfo)}, .flags = {}, .index = index, .count = {}};
  switch (index) {
    case kIntx:
      info.flags = kIrqEventfd | kIrqMaskable | kIrqAutomasked;
      info.count = 1u;
      return info;
    case kMsi:
      return info;
    case kMsix:
      info.flags = kIrqEventfd | kIrqMaskable;
      info.count = uint32_t{kVectors};
      return info;
    case kErr:
    case kReq:
      info.flags = kIrqEventfd;
      info.count = 1u;
      return info;
    default:
      return fail(Errc::kInvalid, "no such kind of interrupt", static_cast<int>(index));
  }
}

std::array<std::byte, kVectors * kMsixEntrySize> Interrupts::fresh_table() {
  std::array<std::byte, kVectors * kMsixEntrySize> table{};
  for (size_t i = 0; i < kVectors; ++i) {
    table[i * kMsixEntrySize + kMsixEntryControlAt] = std::byte{kMsixEntryMasked};
  }
  return table;
}

std::span<Interrupts::Vector> Interrupts::vectors_of(uint32_t index) {
  switch (index) {
    case kIntx:
      return pin_;
    case kMsix:
      return msix_;
    case kErr:
      return error_;
    case kReq:
      return removal_;
    default:
      return {};
  }
}

Result<void> Interrupts::set(const IrqSet& request, Bytes values,
                             std::span<env::Descriptor> descriptors) {
  const uint32_t data = request.flags & kDataMask;
  const uint32_t action = request.flags & kActionMask;
  if (!is_one_bit(data) || !is_one_bit(action) ||
      (request.flags & ~(kDataMask | kActionMask)) != 0) {
    return fail(Errc::kInvalid, "flags of SET_IRQS are not one kind of data and one action");
  }
  if (request.index >= kIrqs) return fail(Errc::kInvalid, "no such kind of interrupt");
  const size_t have = vectors_of(request.index).size();
  if (request.start > have || request.count > have - request.start) {
    return fail(Errc::kInvalid, "vectors of SET_IRQS beyond the last one");
  }
  if (data != kIrqDataEventfd && !descriptors.empty()) {
    return fail(Errc::kInvalid, "descriptors with a SET_IRQS that takes none");
  }
  if (action != kIrqActionTrigger && request.index != kIntx && request.index != kMsix) {
    return fail(Errc::kInvalid, "a mask for an interrupt that has none");
  }
  if (data == kIrqDataEventfd) return assign(request, descriptors);
  if (request.count == 0) {
    if (data != kIrqDataNone || action != kIrqActionTrigger || request.start != 0) {
      return fail(Errc::kInvalid, "a SET_IRQS for no vector");
    }
    disable(request.index);
    return {};
  }
  if (data == kIrqDataBool && values.size() < request.count) {
    return fail(Errc::kInvalid, "a SET_IRQS with fewer booleans than vectors");
  }
  for (uint32_t i = 0; i < request.count; ++i) {
    if (data == kIrqDataBool && values[i] == std::byte{0}) continue;
    act(request.index, request.start + i, action);
  }
  return {};
}

Result<void> Interrupts::assign(const IrqSet& request, std::span<env::Descriptor> descriptors) {
  if (!descriptors.empty() && descriptors.size() != request.count) {
    return fail(Errc::kInvalid, "a SET_IRQS with other descriptors than vectors");
  }
  if (request.index == kIntx && (request.flags & kIrqActionUnmask) != 0) {
    return watch_pin(descriptors);
  }
  const auto vectors = vectors_of(request.index).subspan(request.start, request.count);
  for (size_t i = 0; i < vectors.size(); ++i) {
    std::unique_ptr<env::Signal> signal;
    if (!descriptors.empty()) {
      Result<std::unique_ptr<env::Signal>> opened = sharing_.open_signal(descriptors[i]);
      if (!opened) return fail(opened.error());
      signal = std::move(*opened);
    }
    Vector& vector = vectors[i];
    if ((request.flags & kIrqActionMask) != 0) {
      vector.masked = std::move(signal);
    } else if ((request.flags & kIrqActionUnmask) != 0) {
      vector.unmasked = std::move(signal);
    } else {
      if (request.index == kMsix) {
        assigned_ += size_t{signal != nullptr};
        assigned_ -= size_t{vector.trigger != nullptr};
      }
      vector.trigger = std::move(signal);
    }
  }
  look_again();
  return {};
}

Result<void> Interrupts::watch_pin(std::span<env::Descriptor> descriptors) {
  auto watch = std::make_unique<PinWatch>();
  if (!descriptors.empty()) {
    Result<std::unique_ptr<env::Signal>> opened = sharing_.open_signal(descriptors[0]);
    if (!opened) return fail(opened.error());
    watch->signal = std::move(*opened);
  }
  if (pin_watch_ != nullptr) std::exchange(pin_watch_, nullptr)->stop.request();
  if (watch->signal == nullptr) return {};
  pin_watch_ = watch.get();
  gate_.spawn(unmask_on_signal(std::move(watch)));
  return {};
}

task::Task<void> Interrupts::unmask_on_signal(std::unique_ptr<PinWatch> watch) {
  while (true) {
    const Result<void> raised = co_await watch->signal->wait(watch->stop.token());
    if (!raised) break;
    act(kIntx, 0, kIrqActionUnmask);
  }
  if (pin_watch_ == watch.get()) pin_watch_ = nullptr;
}

void Interrupts::act(uint32_t index, uint32_t number, uint32_t action) {
  Vector& vector = vectors_of(index)[number];
  if (action == kIrqActionTrigger) {
    // The client tries out its own signal.
    if (vector.trigger != nullptr) vector.trigger->raise();
    return;
  }
  vector.is_masked = action == kIrqActionMask;
  if (!vector.is_masked) look_again();
}

void Interrupts::disable(uint32_t index) {
  for (Vector& vector : vectors_of(index)) {
    vector.trigger = nullptr;
    vector.masked = nullptr;
    vector.unmasked = nullptr;
    vector.is_masked = false;
    vector.is_pending = false;
  }
  if (index == kMsix) assigned_ = 0;
  if (index == kIntx) {
    if (pin_watch_ != nullptr) std::exchange(pin_watch_, nullptr)->stop.request();
    config_.show_interrupt(false);
  }
}

bool Interrupts::is_msix_used() const { return assigned_ > 0 || config_.is_msix_enabled(); }

bool Interrupts::is_table_masked(size_t vector) const {
  return (table_[vector * kMsixEntrySize + kMsixEntryControlAt] & std::byte{kMsixEntryMasked}) !=
         std::byte{0};
}

bool Interrupts::is_held(size_t number) const {
  const Vector& vector = msix_[number];
  return vector.trigger == nullptr || vector.is_masked || config_.is_msix_masked() ||
         (vector.is_in_table && is_table_masked(number));
}

void Interrupts::raise(uint16_t vector) {
  if (vector >= kVectors) return;
  if (!is_msix_used()) return raise_pin();
  if (is_held(vector)) {
    msix_[vector].is_pending = true;
    return;
  }
  msix_[vector].trigger->raise();
}

void Interrupts::raise_pin() {
  Vector& pin = pin_[0];
  if (pin.trigger == nullptr || pin.is_masked || config_.is_intx_disabled()) {
    pin.is_pending = true;
    config_.show_interrupt(true);
    return;
  }
  pin.is_pending = false;
  pin.is_masked = true;
  config_.show_interrupt(true);
  pin.trigger->raise();
}

bool Interrupts::request_removal() {
  if (removal_[0].trigger == nullptr) return false;
  removal_[0].trigger->raise();
  return true;
}

void Interrupts::look_again() {
  if (!is_msix_used()) {
    Vector& pin = pin_[0];
    if (pin.is_pending) {
      raise_pin();
    } else if (!pin.is_masked) {
      config_.show_interrupt(false);
    }
    return;
  }
  for (size_t i = 0; i < kVectors; ++i) {
    if (!msix_[i].is_pending || is_held(i)) continue;
    msix_[i].is_pending = false;
    msix_[i].trigger->raise();
  }
}

void Interrupts::read_table(uint64_t offset, MutableBytes into) const {
  for (size_t i = 0; i < into.size(); ++i) {
    const uint64_t at = offset + i;
    uint8_t value = 0;
    if (at < table_.size()) {
      value = static_cast<uint8_t>(table_[at]);
    } else if (at >= kPendingAt && at - kPendingAt < kVectors / 8) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if (msix_[(at - kPendingAt) * 8 + bit].is_pending) value |= 1 << bit;
      }
    }
    into[i] = std::byte{value};
  }
}

void Interrupts::write_table(uint64_t offset, Bytes from) {
  for (size_t i = 0; i < from.size() && offset + i < table_.size(); ++i) {
    const uint64_t at = offset + i;
    const uint64_t in_entry = at % kMsixEntrySize;
    if (in_entry < kMsixEntryControlAt) {
      table_[at] = from[i];
      continue;
    }
    if (in_entry > kMsixEntryControlAt) continue;  // reserved
    const size_t number = at / kMsixEntrySize;
    Vector& vector = msix_[number];
    const bool was_masked = is_table_masked(number);
    table_[at] = from[i] & std::byte{kMsixEntryMasked};
    vector.is_in_table = true;
    const bool is_masked = is_table_masked(number);
    if (was_masked == is_masked) continue;
    env::Signal* told = (is_masked ? vector.masked : vector.unmasked).get();
    if (told != nullptr) told->raise();
  }
  look_again();
}

void Interrupts::reset() {
  for (const uint32_t index : {kIntx, kMsix}) {
    for (Vector& vector : vectors_of(index)) {
      vector.is_masked = false;
      vector.is_in_table = false;
      vector.is_pending = false;
    }
  }
  table_ = fresh_table();
}

task::Task<void> Interrupts::close() {
  for (const uint32_t index : {kIntx, kMsix, kErr, kReq}) disable(index);
  co_await gate_.close();
}

void Interrupts::save(MutableBytes into) const {
  std::ranges::copy(table_, into.begin());
  const auto flags = [](const Vector& vector) {
    return std::byte{static_cast<uint8_t>((vector.is_masked ? kSavedMasked : 0) |
                                          (vector.is_in_table ? kSavedInTable : 0) |
                                          (vector.is_pending ? kSavedPending : 0))};
  };
  MutableBytes rest = into.subspan(table_.size());
  for (size_t i = 0; i < kVectors; ++i) rest[i] = flags(msix_[i]);
  rest[kVectors] = flags(pin_[0]);
}

void Interrupts::load(Bytes state) {
  reset();
  std::ranges::copy(state.first(table_.size()), table_.begin());
  const auto take = [](Vector& vector, std::byte saved) {
    const auto flags = static_cast<uint8_t>(saved);
    vector.is_masked = (flags & kSavedMasked) != 0;
    vector.is_in_table = (flags & kSavedInTable) != 0;
    vector.is_pending = (flags & kSavedPending) != 0;
  };
  const Bytes rest = state.subspan(table_.size());
  for (size_t i = 0; i < kVectors; ++i) take(msix_[i], rest[i]);
  take(pin_[0], rest[kVectors]);
  // Bits that software cannot write are zero in any table of ours.
  for (size_t i = 0; i < kVectors; ++i) {
    MutableBytes entry = MutableBytes(table_).subspan(i * kMsixEntrySize, kMsixEntrySize);
    entry[kMsixEntryControlAt] &= std::byte{kMsixEntryMasked};
    std::ranges::fill(entry.subspan(kMsixEntryControlAt + 1), std::byte{0});
  }
}

}  // namespace cairn::door::vfio_user
