// SPDX-License-Identifier: Apache-2.0
// What was read and written over the life of this process, by all cores.
#pragma once

#include <cstdint>

namespace cairn::nvme {

struct IoTotals {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t sectors_read = 0;  // of 512 bytes
  uint64_t sectors_written = 0;
  uint64_t media_errors = 0;

  void add(const IoTotals& other) {
    reads += other.reads;
    writes += other.writes;
    sectors_read += other.sectors_read;
    sectors_written += other.sectors_written;
    media_errors += other.media_errors;
  }
};

}  // namespace cairn::nvme
