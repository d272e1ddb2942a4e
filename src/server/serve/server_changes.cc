// SPDX-License-Identifier: Apache-2.0
// What a server keeps of its changes, and changes that are kept and nothing more: who may connect,
// and how well namespaces are reached.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "nvme/format/limits.h"
#include "server/common/drive_option.h"
#include "server/common/host_nqn.h"
#include "server/open/take_drive.h"
#include "server/serve/server.h"

namespace cairn::server {

Attempt<void> Server::keep(std::string_view what) {
  hooks_.say(config::LogLevel::kInfo, what);
  if (const Attempt<void> kept = save(); !kept) {
    std::string text =
        fmt::format("{}, but this will not survive a restart: {}", what, kept.error().text);
    hooks_.say(config::LogLevel::kError, text);
    return refuse(std::move(text));
  }
  return {};
}

uint32_t Server::next_nsid(const std::string& nqn) const {
  std::set<uint32_t> taken;
  if (const auto configured = configured_.find(nqn); configured != configured_.end()) {
    taken = configured->second;
  }
  for (const auto& drive : drives_.all()) {
    if (drive->nqn == nqn) taken.insert(drive->space.nsid);
  }
  const auto changes = changes_.find(nqn);
  const uint32_t last = changes == changes_.end() ? 0 : changes->second.last_nsid;
  for (uint32_t i = 0; i < nvme::kNsidMax; ++i) {
    const uint32_t nsid = (last + i) % nvme::kNsidMax + 1;
    if (!taken.contains(nsid)) return nsid;
  }
  return 0;  // the registry says that there are too many
}

void Server::set_size(const ServedDrive& drive, uint64_t bytes) {
  SubsystemChanges& changes = changes_[drive.nqn];
  const auto added = changes.added.find(drive.space.nsid);
  if (added == changes.added.end()) {
    changes.resized[drive.space.nsid] = bytes;
  } else {
    set_kept_size(added->second, bytes);
  }
}

void Server::set_text(ServedDrive& drive, const std::string& text) {
  drive.text = text;
  drive.space.stack = text;
  drive.space.drive = {};
  if (Attempt<drive::Spec> single = parse_drive(text); single && drive.stack() == nullptr) {
    drive.space.stack.clear();
    drive.space.drive = std::move(*single);
  }
  SubsystemChanges& changes = changes_[drive.nqn];
  const auto added = changes.added.find(drive.space.nsid);
  nvme::NamespaceOptions& kept =
      added == changes.added.end() ? changes.edited[drive.space.nsid] : added->second;
  kept = drive.space;
  kept.source = nullptr;
  changes.resized.erase(drive.space.nsid);
}

void Server::set_place(ServedDrive& drive, const BoxPlace& place) {
  set_text(drive, place.uri.text());
  changes_[drive.nqn].moved[drive.space.nsid] = {.control = place.control,
                                                 .uri = drive.text,
                                                 .layers = place.layers,
                                                 .transfer_blocks = place.transfer_blocks};
}

void Server::set_back(ServedDrive& drive) {
  set_text(drive, drive.moved->layers);
  changes_[drive.nqn].moved.erase(drive.space.nsid);
  drive.moved.reset();
}

task::Task<Attempt<void>> Server::set_ana_state(std::string nqn, uint32_t group,
                                                nvme::AnaState state) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  Result<void> set = co_await registry().set_ana_state(turn->nqn, group, state);
  if (!set)
    co_return refuse(fmt::format("ANA group {} cannot be set: {}", group, set.error().text()));
  changes_[turn->nqn].ana[group] = state;
  co_return keep(fmt::format("ANA group {} of {} is changed", group, turn->nqn));
}

HostAccess Server::access_of(std::string_view nqn) const {
  for (const nvme::SubsystemOptions& each : registry().subsystems()) {
    if (each.nqn == nqn) return {.any = each.allow_any_host, .hosts = each.hosts};
  }
  return {};
}

Attempt<void> Server::set_access(const std::string& nqn, HostAccess access) {
  if (Result<void> set = registry().set_hosts(nqn, access.any, access.hosts); !set) {
    return refuse(set.error().text());
  }
  const std::string what = access.any
                               ? fmt::format("every host may use {}", nqn)
                               : fmt::format("{} hosts may use {}", access.hosts.size(), nqn);
  changes_[nqn].access = std::move(access);
  return keep(what);
}

task::Task<Attempt<void>> Server::allow_host(std::string nqn, std::string host) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  HostAccess access = access_of(turn->nqn);
  if (host == "any") {
    access = {};
  } else {
    if (Attempt<void> named = check_host_nqn(host); !named) co_return named;
    // The first name on the list closes the subsystem to all others.
    if (std::exchange(access.any, false)) access.hosts.clear();
    if (std::ranges::find(access.hosts, host) == access.hosts.end()) {
      if (access.hosts.size() >= kHostsMax) {
        co_return refuse(
            fmt::format("{} has {} hosts on its list, the most there can be: remove one first",
                        turn->nqn, kHostsMax));
      }
      access.hosts.push_back(std::move(host));
    }
  }
  co_return set_access(turn->nqn, std::move(access));
}

task::Task<Attempt<void>> Server::deny_host(std::string nqn, std::string host) {
  Attempt<Turn> turn = co_await take_turn(std::move(nqn));
  if (!turn) co_return std::unexpected(turn.error());
  HostAccess access = access_of(turn->nqn);
  if (host == "any") {
    access.hosts.clear();
    access.any = false;
  } else if (access.any) {
    co_return refuse(
        fmt::format("{} is open to every host: name those that may use it with 'cairn host add "
                    "NQN', or close it with 'cairn host remove any'",
                    turn->nqn));
  } else if (std::erase(access.hosts, host) == 0) {
    co_return refuse(fmt::format("{} is not on the list of {}{}", in_quotes(host), turn->nqn,
                                 did_you_mean(host, access.hosts)));
  }
  co_return set_access(turn->nqn, std::move(access));
}

}  // namespace cairn::server
