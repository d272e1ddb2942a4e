// SPDX-License-Identifier: Apache-2.0
// The ceiling of NVMe/TCP on this machine: the same bytes in the same batches, and none of its
// logic. Requests of 72 bytes, answers with headers of 24, data beside either; two processes that
// spin on plain non-blocking sockets, pinned to a CPU each.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "bench/exchange_figures.h"

namespace cairn::bench {

struct ExchangeLoad {
  double seconds = 1;
  double warm_up_seconds = 0.2;
  uint32_t data_size = 4096;
  uint32_t depth = 1;            // requests on their way at once, 1024 at most
  bool writes = false;           // the data go with the request, else with the answer
  bool batches = true;           // whatever is ready leaves in one call; else one call each
  uint64_t memory = 256u << 20;  // the server's, in which requests name random places
  int server_cpu = 0;
  int client_cpu = 1;
};

Result<ExchangeFigures> bare_exchange(const ExchangeLoad& load);

}  // namespace cairn::bench
