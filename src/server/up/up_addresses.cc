// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_addresses.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "server/common/advice.h"
#include "server/common/holder_retry.h"

namespace cairn::server {

namespace {

task::Task<Attempt<env::Address>> free_address(env::Env& env, UpDoor door, bool was_killed) {
  if (door.at.family == env::Address::Family::kLocal || door.at.port == 0) co_return door.at;
  Result<void> free = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env);
  for (bool again = true; again;) {
    const Result<std::unique_ptr<env::Listener>> probe = env.listen(door.at);
    free = probe ? Result<void>() : fail(probe.error());
    again = was_killed;
    if (again) again = co_await retry.after(free);
  }
  if (free) co_return door.at;
  if (free.error() != Errc::kExists || !door.or_any_port) {
    co_return std::unexpected(cannot_listen(door.at, free.error()));
  }
  door.at.port = 0;
  const Result<std::unique_ptr<env::Listener>> probe = env.listen(door.at);
  if (!probe) co_return std::unexpected(cannot_listen(door.at, probe.error()));
  co_return (*probe)->local();
}

}  // namespace

task::Task<Attempt<FreeAddresses>> free_addresses(env::Env& env, std::vector<UpDoor> doors,
                                                  bool was_killed) {
  FreeAddresses found;
  for (const UpDoor& door : doors) {
    Attempt<env::Address> at = co_await free_address(env, door, was_killed);
    if (!at) co_return std::unexpected(at.error());
    if (door.at.port != 0 && at->port != door.at.port) {
      found.notes.push_back(
          fmt::format("{} is taken: another port is used, {}", door.at.text(), at->port));
    }
    found.at.push_back(std::move(*at));
  }
  co_return found;
}

}  // namespace cairn::server
