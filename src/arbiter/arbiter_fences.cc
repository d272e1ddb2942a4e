// SPDX-License-Identifier: Apache-2.0
// Hosts that lost what they had are fenced, at drives that do not answer as soon as they do.
#include <algorithm>
#include <utility>

#include "arbiter/arbiter.h"
#include "task/deadline.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

bool Arbiter::is_fenced(MegaVolId id) const {
  const auto found = pool_.members().find(id);
  return found == pool_.members().end() || found->second.unfenced.empty();
}

std::vector<MegaVolId> Arbiter::unfenced_of(VolumeId id) const {
  std::vector<MegaVolId> drives;
  for (const auto& [drive, member] : pool_.members()) {
    if (member.unfenced.contains(id)) drives.push_back(drive);
  }
  return drives;
}

// Whether it has legs on others.
bool Arbiter::has_drive_beside(const Volume& volume, const std::vector<MegaVolId>& drives) const {
  return std::ranges::any_of(volume.legs, [&](const auto& each) {
    return each.second > 0 && std::ranges::find(drives, each.first) == drives.end();
  });
}

// One that is recorded there already stays: whoever came after it was never let to the drive.
Task<Result<void>> Arbiter::record_unfenced(VolumeId of, std::string host,
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
  start_late_fences();
  co_return Result<void>();
}

void Arbiter::start_late_fences() {
  for (const auto& [id, member] : pool_.members()) {
    if (member.unfenced.empty() || store_.is_stopping() || !late_fences_.insert(id).second)
      continue;
    gate_.spawn(fence_late(id));
  }
}

Task<void> Arbiter::fence_late(MegaVolId id) {
  while (!store_.is_stopping() && !is_fenced(id)) {
    const Result<void> done = co_await fence_next(id);
    if (done) continue;
    const Result<void> slept = co_await task::sleep_for(env_, options_.retry, store_.stop_token());
    if (!slept) break;
  }
  late_fences_.erase(id);
}

Task<Result<void>> Arbiter::fence_next(MegaVolId id) {
  const Member& first = *pool_.member(id);
  const MegaVolInfo info = first.info;
  const auto [of, host] = *first.unfenced.begin();
  const std::vector<MegaVolId> left =
      co_await parts_.fence.fence(host, std::vector<MegaVolInfo>{info}, store_.stop_token());
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

Task<Result<void>> Arbiter::fence_former_writer(CancelToken token) {
  const std::string former = store_.former_writer();
  if (former.empty()) co_return Result<void>();
  std::vector<MegaVolId> left = co_await parts_.fence.fence(former, store_.mega_vols(), token);
  if (token.requested()) co_return fail(token.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  // Another drive's cleaning may have been faster.
  if (store_.former_writer().empty()) co_return Result<void>();
  const Result<void> recorded = co_await record_unfenced(kOfArbiters, former, std::move(left));
  if (!recorded) co_return recorded;
  co_return co_await store_.become_writer();
}

// From the first commit on the holder may ask for nothing; when it is fenced it can write nothing.
// Drives where it is not are not touched by those who come after it, until it is.
Task<Result<void>> Arbiter::expel_holder(VolumeId id, CancelToken token) {
  std::string holder;
  volume::Epoch epoch;
  {
    const Result<task::Units> turn = co_await store_.take_turn();
    if (!turn) co_return fail(turn.error());
    const Volume* volume = pool_.volume(id);
    if (volume == nullptr) co_return fail(Errc::kNotFound, "there is no such volume");
    VolumeRecord record = volume->record;
    if (record.holder.empty()) co_return Result<void>();
    holder = record.holder;
    epoch = record.epoch = volume::Epoch(record.epoch.value() + 1);
    const Result<void> done = co_await store_.commit_record(std::move(record));
    if (!done) co_return done;
  }
  std::vector<MegaVolId> left = co_await parts_.fence.fence(holder, store_.mega_vols(), token);
  if (token.requested()) co_return fail(token.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Volume* volume = pool_.volume(id);
  if (volume == nullptr) co_return fail(Errc::kNotFound, "there is no such volume");
  if (volume->record.epoch != epoch) {
    co_return fail(Errc::kExists, "somebody else is opening the volume");
  }
  // One that lives would read what is old there; nobody reads through a tenant.
  if (!left.empty() && has_lease(*volume) && !is_tenant(holder)) {
    co_return fail(Errc::kUnreachable,
                   "whoever has the volume open cannot be fenced now, and its lease holds");
  }
  if (volume->mapped > 0 && !has_drive_beside(*volume, left)) {
    co_return fail(Errc::kUnreachable,
                   "whoever has the volume open cannot be fenced at any of its drives now");
  }
  const Result<void> recorded = co_await record_unfenced(id, holder, std::move(left));
  if (!recorded) co_return recorded;
  VolumeRecord record = pool_.volume(id)->record;
  record.holder.clear();
  co_return co_await store_.commit_record(std::move(record));
}

}  // namespace cairn::arbiter
