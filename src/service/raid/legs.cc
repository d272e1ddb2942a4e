// SPDX-License-Identifier: Apache-2.0
#include "service/raid/legs.h"

#include <algorithm>
#include <utility>

#include "drive/local_opening.h"

namespace cairn::drive {

size_t Legs::count(State state) const {
  return static_cast<size_t>(std::ranges::count(members, state, &Leg::state));
}

bool Legs::have_news() const {
  return std::ranges::find(members, Leg::kUnsaved, &Leg::stale_from) != members.end();
}

uint64_t Legs::local_opening() const {
  uint64_t all = kKernelKeeps;
  for (const Leg& leg : members) {
    if (leg.drive == nullptr || leg.state == State::kLost) continue;
    all = combined_local_opening(all, leg.drive->incarnation().local_opening);
  }
  return all;
}

std::optional<size_t> Legs::number_of(const Drive* drive) const {
  const auto at = std::ranges::find(given, drive);
  if (drive == nullptr || at == given.end()) return std::nullopt;
  return static_cast<size_t>(at - given.begin());
}

void Legs::use_spare(size_t leg, uint64_t id) {
  Leg& lost = members[leg];
  if (lost.drive != nullptr) unused.push_back(std::move(lost.drive));
  lost.drive = std::move(spares.back());
  spares.pop_back();
  lost.remember();
  begin_anew(leg, id);
}

void Legs::begin_anew(size_t leg, uint64_t id) {
  Leg& lost = members[leg];
  lost.is_replaced = false;
  lost.medium = lost.known.medium;
  lost.id = id;
  lost.stale_from = Leg::kUnsaved;
  lost.state = State::kCopying;
}

void Legs::give_back(std::vector<std::unique_ptr<Drive>>& below) {
  below.clear();
  for (Leg& leg : members) below.push_back(std::move(leg.drive));
  for (auto& drive : spares) below.push_back(std::move(drive));
  for (AbsentDrive& one : absent) below.push_back(std::move(one.drive));
  for (auto& drive : unused) below.push_back(std::move(drive));
}

task::Task<void> Legs::close() {
  for (Leg& leg : members) {
    if (leg.drive != nullptr) co_await leg.drive->close();
  }
  for (std::unique_ptr<Drive>& drive : spares) co_await drive->close();
  for (AbsentDrive& one : absent) {
    if (one.drive != nullptr) co_await one.drive->close();
  }
  for (std::unique_ptr<Drive>& drive : unused) co_await drive->close();
}

Result<uint32_t> common_block_size(const std::vector<std::unique_ptr<Drive>>& drives) {
  uint32_t common = 0;
  for (const std::unique_ptr<Drive>& drive : drives) {
    if (drive == nullptr) continue;
    const uint32_t own = drive->geometry().block_size;
    if (common != 0 && own != common) {
      return fail(Errc::kInvalid, "its drives have different block sizes; one has",
                  static_cast<int32_t>(own));
    }
    common = own;
  }
  if (common == 0) return fail(Errc::kUnreachable, "none of its drives is there");
  return common;
}

}  // namespace cairn::drive
