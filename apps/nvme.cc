// SPDX-License-Identifier: Apache-2.0
// `cairn nvme`: drives across the network, from the command line.
#include <array>

#include "apps/nvme/commands.h"

namespace cairn::apps {

std::span<const NvmeVerb> nvme_verbs() {
  static const std::array verbs = {
      NvmeVerb{"perf", "measure IOPS, throughput and latency", make_nvme_perf},
  };
  return verbs;
}

}  // namespace cairn::apps
