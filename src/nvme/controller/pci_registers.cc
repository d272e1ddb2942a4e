// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/pci_registers.h"

#include <algorithm>
#include <array>

namespace cairn::nvme {

namespace {

void set_half(Le64& value, bool high, uint32_t half) {
  const uint64_t kept = high ? bits<31, 0>(value.value()) : bits<63, 32>(value.value()) << 32;
  value = kept | (high ? uint64_t{half} << 32 : uint64_t{half});
}

uint32_t offset_of(PropertyOffset property) { return static_cast<uint32_t>(property); }

}  // namespace

void PciRegisters::read(uint32_t offset, MutableBytes into) const {
  std::array<std::byte, kImageSize> image{};
  const auto put = [&image](uint32_t at, auto value) {
    store(MutableBytes(image).subspan(at), value);
  };
  put(offset_of(PropertyOffset::kCapabilities), Properties::capabilities(options_).encode());
  put(offset_of(PropertyOffset::kVersion), kVersion.encode());
  put(PciRegister::kInterruptMaskSet, values_.interrupt_mask);
  put(PciRegister::kInterruptMaskClear, values_.interrupt_mask);
  put(offset_of(PropertyOffset::kConfiguration), values_.configuration);
  put(offset_of(PropertyOffset::kStatus), status_.encode());
  put(PciRegister::kAdminQueues, values_.admin_sizes);
  put(PciRegister::kAdminSubmission, values_.admin_submission);
  put(PciRegister::kAdminCompletion, values_.admin_completion);
  put(offset_of(PropertyOffset::kReadyTimeouts), Properties::ready_timeouts().encode());
  std::ranges::fill(into, std::byte{0});
  if (offset >= image.size()) return;
  const Bytes there = Bytes(image).subspan(offset);
  std::ranges::copy(there.first(std::min(there.size(), into.size())), into.begin());
}

void PciRegisters::write(uint32_t offset, Bytes from) {
  const bool is_word = from.size() == 4 && is_aligned(offset, 4);
  const bool is_pair = from.size() == 8 && is_aligned(offset, 8);
  if (!is_word && !is_pair) return;
  write_word(offset, load<uint32_t>(from));
  if (is_pair) write_word(offset + 4, load<uint32_t>(from.subspan(4)));
}

void PciRegisters::write_word(uint32_t offset, uint32_t value) {
  switch (offset) {
    case PciRegister::kInterruptMaskSet:
      values_.interrupt_mask = values_.interrupt_mask | value;
      break;
    case PciRegister::kInterruptMaskClear:
      values_.interrupt_mask = values_.interrupt_mask & ~value;
      break;
    case static_cast<uint32_t>(PropertyOffset::kConfiguration):
      configure(value);
      break;
    case PciRegister::kAdminQueues:
      values_.admin_sizes = value;
      break;
    case PciRegister::kAdminSubmission:
    case PciRegister::kAdminSubmission + 4:
      set_half(values_.admin_submission, offset != PciRegister::kAdminSubmission, value);
      break;
    case PciRegister::kAdminCompletion:
    case PciRegister::kAdminCompletion + 4:
      set_half(values_.admin_completion, offset != PciRegister::kAdminCompletion, value);
      break;
    default:
      break;
  }
}

void PciRegisters::configure(uint32_t value) {
  const bool was_on = configuration().enable;
  values_.configuration = value;
  if (was_on && !configuration().enable) reset_due_ = true;
  // A shutdown that was taken back is over once it is done; see next().
  if (configuration().shutdown == ShutdownNotice::kNone &&
      status_.shutdown == ShutdownStatus::kComplete) {
    status_.shutdown = ShutdownStatus::kNone;
  } else if (configuration().shutdown != ShutdownNotice::kNone &&
             status_.shutdown == ShutdownStatus::kNone) {
    status_.shutdown = ShutdownStatus::kOccurring;
  }
}

PciRegisters::Step PciRegisters::next() const {
  // Shutting down first: it flushes what a reset would cut short.
  if (status_.shutdown == ShutdownStatus::kOccurring) return Step::kShutDown;
  if (reset_due_) return Step::kReset;
  const bool is_off = !status_.ready && !status_.fatal;
  return configuration().enable && is_off ? Step::kEnable : Step::kNone;
}

void PciRegisters::was_reset() {
  reset_due_ = false;
  // A driver may reset a controller that it has shut down, to use it again (3.6.1).
  const bool shut_down = configuration().shutdown != ShutdownNotice::kNone;
  status_ = {.shutdown = shut_down ? status_.shutdown : ShutdownStatus::kNone};
}

bool PciRegisters::can_enable() const {
  const AdminQueueSizes sizes = admin_sizes();
  // A queue has two entries at least (3.3.3.2), and begins a page.
  return Properties::is_acceptable(configuration(), options_) && sizes.submission > 0 &&
         sizes.completion > 0 && is_aligned(admin_submission(), kPageSizeMin) &&
         is_aligned(admin_completion(), kPageSizeMin);
}

PciRegisters::Values PciRegisters::save() const {
  Values values = values_;
  values.status = status_.encode();
  return values;
}

void PciRegisters::restore(const Values& values) {
  values_ = values;
  status_ = ControllerStatus::decode(values.status);
  reset_due_ = status_.ready && !configuration().enable;
  if (status_.ready && !can_enable()) status_.fatal = true;
}

}  // namespace cairn::nvme
