// SPDX-License-Identifier: Apache-2.0
// A change of a drive's size: at every door that has it, or at none.
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_text.h"
#include "server/serve/server.h"

namespace cairn::server {

task::Task<Attempt<void>> DriveServer::resize_at_nbd(std::string name, uint64_t bytes) {
  const Result<void> resized = co_await nbd_.resize(name, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

task::Task<Attempt<void>> DriveServer::resize_at_vhost(std::string name, uint64_t bytes) {
  const Result<void> resized = co_await vhost_.resize(name, bytes);
  if (!resized) co_return refuse(error_text(resized.error()));
  co_return Attempt<void>();
}

std::vector<DriveServer::Resizing> DriveServer::resizings_of(const ServedDrive& drive) {
  std::vector<Resizing> all;
  // Every drive is an export, listened for or not.
  all.emplace_back(
      [this, name = drive.name](uint64_t bytes) { return resize_at_nbd(name, bytes); });
  if (drive.vhost) {
    all.emplace_back(
        [this, name = drive.name](uint64_t bytes) { return resize_at_vhost(name, bytes); });
  }
  if (box_ == nullptr) return all;
  const auto add_namespace = [this, &all](std::string nqn, uint32_t nsid) {
    all.emplace_back([this, nqn = std::move(nqn), nsid](uint64_t bytes) {
      return box_->resize_namespace(nqn, nsid, bytes);
    });
  };
  add_namespace(options_.nqn(), static_cast<uint32_t>(&drive - drives_.data()) + 1);
  std::set<std::string_view> added = {options_.nqn()};
  for (const VfioController& controller : vfio_at_) {
    if (controller.has(drive.name) && added.insert(controller.nqn).second) {
      add_namespace(controller.nqn, 1);
    }
  }
  return all;
}

task::Task<Attempt<void>> DriveServer::resize(std::string name, uint64_t bytes) {
  const Result<void> mine = co_await changing_.acquire(1, env_.stop_token());
  if (!mine) co_return refuse("drives are not served any more");
  const task::Units held(changing_, 1);
  Attempt<void> resized = co_await resize_in_turn(std::move(name), bytes);
  co_return resized;
}

task::Task<Attempt<void>> DriveServer::resize_in_turn(std::string name, uint64_t bytes) {
  const Attempt<ServedDrive*> drive = find(name);
  if (!drive) co_return std::unexpected(drive.error());
  name = (*drive)->name;
  const Result<uint64_t> before = nbd_.size(name);
  if (!before) co_return refuse(fmt::format("drive {}: {}", name, error_text(before.error())));
  const std::vector<Resizing> doors = resizings_of(**drive);
  size_t done = 0;
  Attempt<void> outcome;
  while (outcome && done < doors.size()) {
    outcome = co_await doors[done](bytes);
    if (outcome) ++done;
  }
  if (outcome) co_return outcome;
  std::string stuck;
  while (done > 0) {
    const Attempt<void> undone = co_await doors[--done](*before);
    if (!undone) stuck = undone.error().text;
  }
  if (stuck.empty()) {
    co_return refuse(fmt::format("drive {} keeps its size: {}", name, outcome.error().text));
  }
  co_return refuse(fmt::format("{}; and not every door has the old size again: {}. Serve {} anew",
                               outcome.error().text, stuck, name));
}

}  // namespace cairn::server
