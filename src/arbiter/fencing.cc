// SPDX-License-Identifier: Apache-2.0
#include "arbiter/fencing.h"

#include <utility>

#include "task/deadline.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

bool Fencing::is_fenced(MegaVolId id) const {
  const auto found = pool_.members().find(id);
  return found == pool_.members().end() || found->second.unfenced.empty();
}

std::vector<MegaVolId> Fencing::unfenced_of(VolumeId id) const {
  std::vector<MegaVolId> drives;
  for (const auto& [drive, member] : pool_.members()) {
    if (member.unfenced.contains(id)) drives.push_back(drive);
  }
  return drives;
}

// One that is recorded there already stays: whoever came after it was never let to the drive.
Task<Result<void>> Fencing::record_unfenced(VolumeId of, std::string host,
                                            std::vector<MegaVolId> drives) {
  for (size_t at = 0; at < drives.size();) {
    meta::Batch batch;
    std::vector<Member*> changed;
    for (; at < drives.size() && batch.writes.size() < meta::kBatchWritesMax / 2; ++at) {
      Member* member = pool_.member(drives[at]);
      if (member == nullptr || member->unfenced.contains(of)) continue;
      DriveRecord record{.info = member->info, .unfenced = member->unfenced};
      record.unfenced.emplace(of, host);
      batch.put(mega_vol_key(member->info.id), encode(record));
      changed.push_back(member);
    }
    if (changed.empty()) continue;
    const Result<void> done = co_await store_.commit(std::move(batch));
    if (!done) co_return done;
    for (Member* member : changed) member->unfenced.emplace(of, host);
  }
  start();
  co_return Result<void>();
}

void Fencing::start() {
  for (const auto& [id, member] : pool_.members()) {
    if (member.unfenced.empty() || store_.is_stopping() || !late_.insert(id).second) continue;
    gate_.spawn(fence_late(id));
  }
}

Task<void> Fencing::fence_late(MegaVolId id) {
  while (!store_.is_stopping() && !is_fenced(id)) {
    const Result<void> done = co_await fence_next(id);
    if (done) continue;
    const Result<void> slept = co_await task::sleep_for(env_, retry_, store_.stop_token());
    if (!slept) break;
  }
  late_.erase(id);
}

Task<Result<void>> Fencing::fence_next(MegaVolId id) {
  const Member& first = *pool_.member(id);
  const MegaVolInfo info = first.info;
  const auto [of, host] = *first.unfenced.begin();
  const std::vector<MegaVolId> left =
      co_await fence_.fence(host, std::vector<MegaVolInfo>{info}, store_.stop_token());
  if (!left.empty()) co_return fail(Errc::kUnreachable, "the drive does not answer");
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  Member* member = pool_.member(id);
  if (member == nullptr || member->info.uuid != info.uuid) co_return Result<void>();
  DriveRecord record{.info = member->info, .unfenced = member->unfenced};
  record.unfenced.erase(of);
  meta::Batch batch;
  batch.put(mega_vol_key(id), encode(record));
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (done) member->unfenced.erase(of);
  co_return done;
}

Task<std::vector<MegaVolId>> Fencing::fence(std::string host, CancelToken token) {
  return fence_.fence(std::move(host), store_.mega_vols(), token);
}

Task<Result<void>> Fencing::fence_former_writer(CancelToken token) {
  const std::string former = store_.former_writer();
  if (former.empty()) co_return Result<void>();
  std::vector<MegaVolId> left = co_await fence(former, token);
  if (token.requested()) co_return fail(token.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  // Another drive's cleaning may have been faster.
  if (store_.former_writer().empty()) co_return Result<void>();
  const Result<void> recorded = co_await record_unfenced(kOfArbiters, former, std::move(left));
  if (!recorded) co_return recorded;
  co_return co_await store_.become_writer();
}

}  // namespace cairn::arbiter
