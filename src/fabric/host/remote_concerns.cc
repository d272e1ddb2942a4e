// SPDX-License-Identifier: Apache-2.0
// What is wrong with the way to a namespace.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"

namespace cairn::fabric {

namespace {

std::string why(Path& path) {
  if (path.is_stopped()) return "it was given up";
  const bool is_live = path.controller().session() != nullptr;
  if (is_live) return "it is connected, and does not reach the namespace now";
  const std::optional<Error>& last = path.controller().last_error();
  return last ? last->text() : "it is being connected";
}

}  // namespace

std::vector<drive::Concern> RemoteDrive::concerns() const {
  if (!is_known_ || is_closing_) return {};
  std::string lost;
  size_t usable = 0;
  for (const std::unique_ptr<Path>& path : paths_.all()) {
    if (path->rank() != Path::Rank::kUnusable) {
      ++usable;
      continue;
    }
    lost += fmt::format("{}{} ({})", lost.empty() ? "" : ", ", path->controller().address().text(),
                        why(*path));
  }
  if (lost.empty()) return {};
  if (usable > 0) {
    return {{.code = "path_lost",
             .what = fmt::format("{} of {} paths cannot be used: {}; look after the network and "
                                 "the target there",
                                 paths_.size() - usable, paths_.size(), lost)}};
  }
  return {{.health = drive::Health::kFailing,
           .code = "unreachable",
           .what = fmt::format("no path can be used: {}; {}. It is tried again by itself: look "
                               "after the network and the target",
                               lost,
                               is_failing_ ? std::string("requests fail")
                                           : fmt::format("requests wait, and fail after {}",
                                                         text(options_.loss_timeout)))}};
}

}  // namespace cairn::fabric
