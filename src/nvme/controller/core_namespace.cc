// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/core_namespace.h"

#include <utility>

#include "env/call.h"

namespace cairn::nvme {

void CoreNamespace::report(const Error& error) {
  if (env == nullptr || reporting) return;
  reporting = true;
  gate.spawn(tell_control(error));
}

task::Task<void> CoreNamespace::tell_control(Error error) {
  const DriveHooks* tell = hooks;
  co_await env::call_on(*env, control, [tell, error](env::Env&) { tell->failed(error); });
  reporting = false;
}

bool CoreNamespace::is_known_to(uint64_t era) {
  const drive::Incarnation now = drive->incarnation();
  if (now == told.incarnation) [[likely]]
    return told.era <= era;
  if (env != nullptr && !std::exchange(reporting_change, true)) gate.spawn(tell_control(now));
  return false;
}

task::Task<void> CoreNamespace::tell_control(drive::Incarnation now) {
  const DriveHooks* tell = hooks;
  co_await env::call_on(*env, control, [tell, now](env::Env&) { return tell->changed(now); });
  reporting_change = false;
}

Result<CoreNamespace*> CoreNamespaces::add(uint32_t nsid, std::unique_ptr<drive::Drive> drive) {
  if (namespaces_.contains(nsid)) return fail(Errc::kExists, "namespace id");
  auto space = std::make_unique<CoreNamespace>();
  space->nsid = nsid;
  space->drive = std::move(drive);
  space->told.incarnation = space->drive->incarnation();
  return namespaces_.emplace(nsid, std::move(space)).first->second.get();
}

task::Task<Result<IoCounters>> CoreNamespaces::remove(uint32_t nsid) {
  CoreNamespace* space = find(nsid);
  if (space == nullptr) co_return fail(Errc::kNotFound, "namespace id");
  space->removed = true;
  co_await space->gate.close();
  co_await space->drive->close();
  const IoCounters counters = space->counters;
  namespaces_.erase(nsid);
  co_return counters;
}

task::Task<void> CoreNamespaces::clear() {
  std::vector<uint32_t> ids;
  for_each([&](CoreNamespace& space) { ids.push_back(space.nsid); });
  for (const uint32_t nsid : ids) {
    Result<IoCounters> removed = co_await remove(nsid);
    if (!removed) continue;  // somebody else is removing it
  }
}

}  // namespace cairn::nvme
