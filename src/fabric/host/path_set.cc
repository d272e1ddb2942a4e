// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/path_set.h"

#include <algorithm>

namespace cairn::fabric {

void PathSet::start() {
  for (const auto& path : paths_) path->start();
}

task::Task<void> PathSet::close() {
  std::vector<task::Task<void>> closing;
  closing.reserve(paths_.size());
  for (const auto& path : paths_) closing.push_back(path->close());
  for (task::Task<void>& each : closing) co_await each;
}

Path* PathSet::pick() {
  const std::optional<size_t> index =
      turns_.pick(paths_.size(), [this](size_t each) { return paths_[each]->rank(); });
  return index ? paths_[*index].get() : nullptr;
}

bool PathSet::has_connected() const {
  return std::ranges::any_of(paths_, [](const auto& path) { return path->is_connected(); });
}

bool PathSet::has_besides(const Path& path) const {
  return std::ranges::any_of(paths_, [&path](const auto& other) {
    return other.get() != &path && other->is_connected() && !other->is_refused();
  });
}

bool PathSet::is_stopped() const {
  return std::ranges::all_of(paths_, [](const auto& path) { return path->is_stopped(); });
}

Error PathSet::none_usable() const {
  const bool answers = std::ranges::any_of(paths_, [](const auto& path) {
    return path->is_connected() && path->ana_state() != nvme::AnaState::kOptimized &&
           path->ana_state() != nvme::AnaState::kNonOptimized;
  });
  if (answers) return {Errc::kUnreachable, "ANA closes every path to the namespace for too long"};
  return {Errc::kUnreachable, "no path to the namespace for too long"};
}

std::vector<HostLane> PathSet::lanes() const {
  std::vector<HostLane> all;
  for (const auto& path : paths_) {
    const HostSession* session = path->controller().session();
    if (session == nullptr) continue;
    const std::vector<HostLane> its = session->lanes();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

}  // namespace cairn::fabric
