// SPDX-License-Identifier: Apache-2.0
#include "model/flash/timing.h"

#include <cmath>

namespace cairn::flash {

namespace {

constexpr uint32_t kPacketPayload = 128;
constexpr uint32_t kPacketOverhead = 28;  // physical layer 2, link layer 6, header 20
constexpr uint32_t kReadRequestPayload = 4;
constexpr uint32_t kDoorbellPayload = 2;
constexpr uint32_t kSubmissionEntryBytes = 64;
constexpr uint32_t kMqsimSubmissionEntryBytes = 72;  // the size its structure happens to have
constexpr uint32_t kCompletionEntryBytes = 16;

// ONFI 3 NV-DDR2 bus cycles in nanoseconds.
constexpr Nanos kChipSelect = 20;
constexpr Nanos kWriteCycle = 25;
constexpr Nanos kBusyAfterCommand = 100;  // tWB
constexpr Nanos kReadyToRead = 20;        // tRR
constexpr Nanos kAddressToData = 70;      // tADL
constexpr Nanos kPlaneSwitch = 500;       // tDBSY
constexpr Nanos kDataPostamble = 6;       // tWPST
constexpr Nanos kDataPostambleHold = 15;  // tWPSTH
constexpr Nanos kLatchSetup = 15;         // tCALS
constexpr Nanos kReadySignal = 20;        // the ready pin's rise after a read
constexpr uint32_t kReadCycles = 6;
constexpr uint32_t kProgramCycles = 6;
constexpr uint32_t kEraseCycles = 4;
constexpr uint32_t kSuspendCycles = 3;

}  // namespace

Timing::Timing(const Parameters& p, const Quirks& quirks)
    : quirks_(quirks),
      technology_(p.technology),
      lane_gb_per_s_(p.lane_gb_per_s),
      lanes_(p.lanes),
      row_bytes_(p.dram_row_bytes),
      burst_bytes_(p.dram_burst_bytes),
      burst_ns_(1000.0 / p.dram_mt_per_s),
      open_row_(p.dram_trcd_ns + p.dram_tcl_ns),
      close_row_(p.dram_trp_ns),
      width_(p.channel_width_bytes),
      two_units_(static_cast<Nanos>(1000.0 / p.channel_mt_per_s) * 2),
      exact_two_units_(2000.0 / p.channel_mt_per_s),
      erase_(p.erase_ns) {
  // A cell with two bits has no middle one: its second page type is the most significant.
  for (size_t i = 0; i < 4; ++i) {
    read_[i] = p.read_ns[i] + kReadySignal;
    program_[i] = p.program_ns[i];
  }
  read_request_ = packets(kReadRequestPayload + kPacketOverhead);
  doorbell_ = pcie_payload(kDoorbellPayload);
  submission_entry_ = pcie_payload(quirks_.fetches_large_entries() ? kMqsimSubmissionEntryBytes
                                                                   : kSubmissionEntryBytes);
  completion_entry_ = pcie_payload(kCompletionEntryBytes);
}

Nanos Timing::packets(uint64_t bytes_on_wire) const {
  const uint64_t per_lane = (bytes_on_wire + lanes_ - 1) / lanes_;
  return static_cast<Nanos>(static_cast<double>(per_lane) / lane_gb_per_s_);
}

Nanos Timing::pcie_payload(uint32_t bytes) const {
  const uint32_t full = bytes / kPacketPayload;
  const uint32_t rest = bytes % kPacketPayload;
  uint64_t on_wire = uint64_t{full} * (kPacketPayload + kPacketOverhead);
  if (rest != 0) on_wire += rest + kPacketOverhead;
  return packets(on_wire);
}

Nanos Timing::dram(uint32_t bytes) const {
  if (bytes <= row_bytes_) {
    const uint32_t transfers = bytes / burst_bytes_ / 2;
    return open_row_ + static_cast<Nanos>(transfers * burst_ns_);
  }
  if (quirks_.charges_every_second_dram_row()) {
    // The rest has a formula of its own.
    const double row = static_cast<double>(row_bytes_ / burst_bytes_ / 2) * burst_ns_;
    const Nanos row_and_close = static_cast<Nanos>(row + static_cast<double>(close_row_));
    const double rows = static_cast<double>(row_and_close) * (bytes / row_bytes_ / 2);
    const double rest = (bytes % row_bytes_) / (burst_bytes_ * burst_ns_);
    return static_cast<Nanos>(static_cast<double>(open_row_) + rows +
                              static_cast<double>(open_row_ + static_cast<Nanos>(rest)));
  }
  const uint32_t rows = (bytes + row_bytes_ - 1) / row_bytes_;
  const double data = static_cast<double>(bytes / burst_bytes_) / 2 * burst_ns_;
  return rows * open_row_ + (rows - 1) * close_row_ + static_cast<Nanos>(data);
}

Nanos Timing::read_command(uint32_t planes) const {
  return kChipSelect + planes * kReadCycles * kWriteCycle + (planes - 1) * kPlaneSwitch +
         kBusyAfterCommand + kReadyToRead;
}

Nanos Timing::program_command(uint32_t planes) const {
  const Nanos last = kProgramCycles * kWriteCycle + kAddressToData + kDataPostamble +
                     kDataPostambleHold + kBusyAfterCommand;
  const Nanos other = (kProgramCycles - 1) * kWriteCycle + kAddressToData + kDataPostamble +
                      kLatchSetup + kBusyAfterCommand + kPlaneSwitch;
  return kChipSelect + last + (planes - 1) * other;
}

Nanos Timing::erase_command(uint32_t planes) const {
  const Nanos one = kEraseCycles * kWriteCycle + kBusyAfterCommand;
  return kChipSelect + planes * one + (planes - 1) * kPlaneSwitch;
}

Nanos Timing::suspend_command() const { return kChipSelect + kSuspendCycles * kWriteCycle; }

Nanos Timing::bus_data(uint32_t bytes) const {
  const uint32_t pairs = bytes / width_ / 2;
  // 400 MT/s then act as 500.
  if (quirks_.rounds_bus_cycles_down()) return pairs * two_units_;
  return static_cast<Nanos>(pairs * exact_two_units_);
}

uint32_t Timing::page_type(uint32_t page) const {
  switch (technology_) {
    case Technology::kSlc:
      return 0;
    case Technology::kMlc:
      return page % 2;
    case Technology::kTlc:
      // Yaakobi et al., ICNC 2012: the first word lines hold lower pages, the rest go by pairs.
      return page <= 5 ? 0 : page <= 7 ? 1 : ((page - 8) >> 1) % 3;
    case Technology::kQlc:
      return page % 4;
  }
  return 0;
}

}  // namespace cairn::flash
