// SPDX-License-Identifier: Apache-2.0
#include "server/common/host_nqn.h"

#include <fmt/format.h>

#include "base/words.h"
#include "nvme/format/nqn.h"

namespace cairn::server {

Attempt<void> check_host_nqn(std::string_view text) {
  if (nvme::is_nqn(text)) return {};
  return refuse(
      fmt::format("{} is not the NQN of a host: it is like nqn.2014-08.org.nvmexpress:uuid:UUID, "
                  "and in /etc/nvme/hostnqn there",
                  in_quotes(text)));
}

}  // namespace cairn::server
