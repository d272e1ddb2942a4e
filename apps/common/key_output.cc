// SPDX-License-Identifier: Apache-2.0
#include "apps/common/key_output.h"

#include <fmt/format.h>

#include "apps/common/output.h"
#include "server/open/key_file.h"

namespace cairn::apps {

Attempt<int> hand_over_key(std::string_view text, const std::string& path) {
  if (path.empty()) {
    say(text);
    return kExitOk;
  }
  if (const Attempt<void> kept = server::write_key_file(path, text); !kept) {
    return std::unexpected(kept.error());
  }
  say(fmt::format("{}: a new key, for its owner's eyes only\n", path));
  return kExitOk;
}

}  // namespace cairn::apps
