// SPDX-License-Identifier: Apache-2.0
#include "arbiter/healer.h"

#include <fmt/format.h>

#include <algorithm>

#include "task/deadline.h"

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::VolumeDrive;

namespace {

constexpr Duration kHealedLook = 200_ms;  // at a volume that is being healed

bool has_holder(const Arbiter& arbiter, const Volume& volume) {
  return arbiter.is_held(volume) && !is_tenant(volume.record.holder);
}

}  // namespace

Task<void> Healer::run(ArbiterHost& host) {
  const CancelToken token = stop_.token();
  while (!token.requested()) {
    const Result<void> slept = co_await task::sleep_for(env_, options_.look, token);
    if (!slept) break;
    if (!host.is_leading()) {
      // Another arbiter leads, and what is open here can be told to nobody.
      end_all();
      continue;
    }
    co_await probe(host);
    look(host);
  }
  end_all();
  co_await gate_.close();
}

void Healer::end_all() {
  for (auto& [id, job] : jobs_) job->stop.request();
}

void Healer::look(ArbiterHost& host) {
  Result<ArbiterHost::Use> arbiter = host.use();
  if (!arbiter) return;
  std::erase_if(not_before_, [this](const auto& each) { return env_.now() >= each.second; });
  const Pool& pool = (*arbiter)->pool();
  for (const auto& [id, volume] : pool.volumes()) {
    if (jobs_.size() >= options_.volumes_max) break;
    if (jobs_.contains(id) || not_before_.contains(id) || has_holder(**arbiter, volume)) continue;
    if (!needs_healing(volume, pool)) continue;
    jobs_.emplace(id, std::make_unique<Job>(stop_.token()));
    gate_.spawn(heal(host, id, volume.record.name));
  }
}

bool Healer::needs_healing(const Volume& volume, const Pool& pool) const {
  const VolumeRecord& record = volume.record;
  if (record.is_leaving || volume.mapped == 0) return false;
  // Whoever had it died, and legs may differ.
  if (record.replicas > 1 && (!record.is_clean || !record.holder.empty())) return true;
  for (const auto& [id, legs] : volume.legs) {
    const auto member = pool.members().find(id);
    if (legs > 0 &&
        (is_lost(id) || (member != pool.members().end() && member->second.info.is_leaving))) {
      return true;
    }
  }
  return std::ranges::any_of(volume.table, [&](const MapEntry& entry) {
    return entry.is_mapped() && (entry.has_stale() || entry.size() != record.replicas);
  });
}

bool Healer::is_lost(MegaVolId id) const {
  const auto found = away_.find(id);
  return found != away_.end() &&
         (found->second.is_gone || env_.now() - found->second.since >= options_.lost_after);
}

std::vector<MegaVolId> Healer::lost() const {
  std::vector<MegaVolId> all;
  for (const auto& [id, away] : away_) {
    if (is_lost(id)) all.push_back(id);
  }
  return all;
}

// Looks at the label of each drive that has something of a volume that nobody has open.
Task<void> Healer::probe(ArbiterHost& host) {
  if (env_.now() < next_probe_) co_return;
  std::vector<MegaVolInfo> drives;
  volume::MegaVolPool pool;
  {
    Result<ArbiterHost::Use> arbiter = host.use();
    if (!arbiter) co_return;
    const Pool& known = (*arbiter)->pool();
    pool = {.uuid = known.record.uuid, .extent_bytes = known.record.extent_bytes};
    std::map<MegaVolId, bool> wanted;
    for (const auto& [id, volume] : known.volumes()) {
      if ((*arbiter)->is_held(volume)) continue;
      for (const auto& [drive, legs] : volume.legs) wanted[drive] |= legs > 0;
    }
    for (const auto& [id, member] : known.members()) {
      if (wanted[id]) drives.push_back(member.info);
    }
    std::erase_if(away_, [&](const auto& each) { return !known.members().contains(each.first); });
  }
  next_probe_ = env_.now() + options_.probe;
  for (const MegaVolInfo& info : drives) {
    task::Deadline deadline(env_, env_.now() + options_.probe_limit, stop_.token());
    // It never writes there, so it need not ask whether it may.
    Result<std::unique_ptr<drive::Drive>> drive = co_await volume::open_mega_vol(
        env_, source_, fmt::format("{}{}.probe", kTenantPrefix, options_.name), pool, info,
        deadline.token());
    if (stop_.requested()) co_return;
    if (drive) {
      co_await (*drive)->close();
      away_.erase(info.id);
    } else {
      Away& away = away_.try_emplace(info.id, Away{.since = env_.now()}).first->second;
      away.is_gone = volume::is_other_drive(drive.error());
    }
  }
}

Task<void> Healer::heal(ArbiterHost& host, VolumeId id, std::string name) {
  const CancelToken stop = jobs_.at(id)->stop.token();
  volume::VolumeOptions options = options_.volume;
  options.client = fmt::format("{}{}-{:016x}", kTenantPrefix, options_.name, env_.rng().next());
  options.lost = lost();
  options.rebuild_rate = options_.rebuild_rate;
  Result<std::unique_ptr<VolumeDrive>> drive =
      co_await VolumeDrive::open(env_, host, source_, name, std::move(options), stop);
  if (drive) {
    ++counters_.opened;
    const bool is_healed = co_await wait_until_healed(**drive, stop);
    if (is_healed) ++counters_.healed;
    co_await (*drive)->close();
  }
  // What could not be done now, or was done and is not seen yet, is looked at later.
  not_before_[id] = env_.now() + options_.pause;
  jobs_.erase(id);
  moved_.set();
  moved_.reset();
}

// Until nothing is left to do, or nothing was done for a while.
Task<bool> Healer::wait_until_healed(const VolumeDrive& drive, CancelToken stop) {
  uint64_t done = 0;
  Time moved = env_.now();
  while (drive.is_held()) {
    const Result<void> slept = co_await task::sleep_for(env_, kHealedLook, stop);
    if (!slept) co_return false;
    const VolumeDrive::Counters& counters = drive.counters();
    const uint64_t now = counters.equalized + counters.resynced + counters.relocated;
    if (drive.jobs().empty()) co_return true;
    if (now != std::exchange(done, now)) moved = env_.now();
    if (env_.now() - moved >= options_.pause) co_return false;
  }
  co_return false;
}

Task<void> Healer::give_up(VolumeId id) {
  not_before_[id] = env_.now() + options_.pause;
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) found->second->stop.request();
  while (jobs_.contains(id)) {
    const Result<void> moved = co_await moved_.wait();
    if (!moved) co_return;
  }
}

}  // namespace cairn::arbiter
