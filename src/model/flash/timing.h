// SPDX-License-Identifier: Apache-2.0
// How long each piece of hardware takes: pure arithmetic on parameters, precomputed.
#pragma once

#include <array>

#include "model/flash/parameters.h"
#include "model/flash/quirks.h"

namespace cairn::flash {

class Timing {
 public:
  Timing(const Parameters& parameters, const Quirks& quirks);

  // PCIe. A payload travels in packets; a read request carries none.
  Nanos pcie_payload(uint32_t bytes) const;
  Nanos pcie_read_request() const { return read_request_; }
  Nanos doorbell() const { return doorbell_; }
  Nanos submission_entry() const { return submission_entry_; }
  Nanos completion_entry() const { return completion_entry_; }

  // One access to the data cache.
  Nanos dram(uint32_t bytes) const;

  // ONFI bus: command and address cycles for `planes` planes (1 or more).
  Nanos read_command(uint32_t planes) const;
  Nanos program_command(uint32_t planes) const;
  Nanos erase_command(uint32_t planes) const;
  Nanos suspend_command() const;
  Nanos bus_data(uint32_t bytes) const;

  // Inside the die.
  Nanos read_cell(uint32_t page) const { return read_[page_type(page)]; }
  Nanos program_cell(uint32_t page) const { return program_[page_type(page)]; }
  Nanos erase_cell() const { return erase_; }
  // Which of a cell's bits a page holds.
  uint32_t page_type(uint32_t page) const;

 private:
  Nanos packets(uint64_t bytes_on_wire) const;

  Quirks quirks_;
  Technology technology_;
  double lane_gb_per_s_;
  uint32_t lanes_;
  uint32_t row_bytes_;
  uint32_t burst_bytes_;
  double burst_ns_;
  Nanos open_row_;   // tRCD + tCL
  Nanos close_row_;  // tRP
  uint32_t width_;
  Nanos two_units_;
  double exact_two_units_;
  std::array<Nanos, 4> read_;
  std::array<Nanos, 4> program_;
  Nanos erase_;
  Nanos read_request_;
  Nanos doorbell_;
  Nanos submission_entry_;
  Nanos completion_entry_;
};

}  // namespace cairn::flash
