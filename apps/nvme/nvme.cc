// SPDX-License-Identifier: Apache-2.0
// `cairn nvme`: drives across the network, from the command line.
#include <array>

#include "apps/nvme/commands.h"

namespace cairn::apps {

std::span<const NvmeVerb> nvme_verbs() {
  static const std::array verbs = {
      NvmeVerb{"discover", "ask a discovery service for subsystems", make_nvme_discover},
      NvmeVerb{"list", "list the namespaces of a subsystem", make_nvme_list},
      NvmeVerb{"id-ctrl", "what a controller is and can do", make_nvme_id_ctrl},
      NvmeVerb{"id-ns", "what a namespace is and can do", make_nvme_id_ns},
      NvmeVerb{"smart-log", "health, wear and counters", make_nvme_smart_log},
      NvmeVerb{"log", "read a log page: ana, error, effects, ...", make_nvme_log},
      NvmeVerb{"features", "what a controller is set to", make_nvme_features},
      NvmeVerb{"read", "read a range into a file or pipe", make_nvme_read},
      NvmeVerb{"write", "write a file or pipe to a range", make_nvme_write},
      NvmeVerb{"copy", "copy a range to another place or namespace", make_nvme_copy},
      NvmeVerb{"flush", "make durable what was written", make_nvme_flush},
      NvmeVerb{"write-zeroes", "write zeroes to a range", make_nvme_write_zeroes},
      NvmeVerb{"discard", "give up what a range holds", make_nvme_discard},
      NvmeVerb{"reservations", "who has reserved a namespace; reserve it", make_nvme_reservations},
      NvmeVerb{"verify", "write patterns, read them back, check (OVERWRITES)", make_nvme_verify},
      NvmeVerb{"perf", "measure IOPS, throughput and latency", make_nvme_perf},
      NvmeVerb{"lanes", "connections under a load: caravans, doorbells", make_nvme_lanes},
  };
  return verbs;
}

}  // namespace cairn::apps
