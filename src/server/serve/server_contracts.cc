// SPDX-License-Identifier: Apache-2.0
// Namespaces under contract. What is kept decides: a contract is there when it is on the disk, and
// gone when it is not there any more, whatever a crash leaves of its namespace.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "server/serve/server.h"

namespace cairn::server {

task::Task<Result<uint32_t>> Server::add_contract(rack::Contract contract,
                                                  nvme::NamespaceOptions options) {
  Attempt<Turn> turn = co_await take_turn(contract.nqn);
  if (!turn) co_return fail(Errc::kNotFound, "the subsystem of the contract is not served");
  options.uuid = contract.id;
  options.owner = contract.owner;
  const Attempt<ServedDrive*> drive = co_await serve_added(turn->nqn, std::move(options), false);
  if (!drive) {
    hooks_.say(config::LogLevel::kError, fmt::format("space for drive {} cannot be made: {}",
                                                     contract.drive, drive.error().text));
    co_return fail(Errc::kIo, "the space cannot be made");
  }
  const uint32_t nsid = (*drive)->space.nsid;
  contract.nsid = nsid;
  SubsystemChanges& changes = changes_[turn->nqn];
  changes.contracts[contract.id] = contract;
  if (keep(fmt::format("namespace {} of {} is given to {}", nsid, turn->nqn, contract.owner))) {
    co_return nsid;
  }
  changes.contracts.erase(contract.id);
  changes.added.erase(nsid);
  co_await stop_serving(turn->nqn, nsid);
  co_return fail(Errc::kIo, "the contract cannot be kept");
}

task::Task<Result<void>> Server::confirm_contract(rack::Contract contract) {
  const Attempt<Turn> turn = co_await take_turn(contract.nqn);
  if (!turn) co_return fail(Errc::kNotFound, "the subsystem of the contract is not served");
  const auto found = changes_[turn->nqn].contracts.find(contract.id);
  if (found == changes_[turn->nqn].contracts.end()) {
    co_return fail(Errc::kNotFound, "there is no such contract any more");
  }
  rack::Contract& kept = found->second;
  kept = contract;
  if (keep(fmt::format("namespace {} of {} is {}'s for good", contract.nsid, turn->nqn,
                       contract.owner))) {
    co_return Result<void>{};
  }
  kept.is_confirmed = false;
  co_return fail(Errc::kIo, "the contract cannot be kept");
}

task::Task<Result<void>> Server::remove_contract(rack::Contract contract, bool has_file) {
  const Attempt<Turn> turn = co_await take_turn(contract.nqn);
  if (!turn) co_return fail(Errc::kNotFound, "the subsystem of the contract is not served");
  SubsystemChanges& changes = changes_[turn->nqn];
  if (changes.ended.contains(contract.id)) co_return Result<void>{};
  auto ended = changes.contracts.extract(contract.id);
  if (has_file) changes.ended.emplace(contract.id, contract);
  auto added = changes.added.extract(contract.nsid);
  if (!keep(fmt::format("namespace {} of {} is given back", contract.nsid, turn->nqn))) {
    changes.ended.erase(contract.id);
    changes.contracts.insert(std::move(ended));
    changes.added.insert(std::move(added));
    co_return fail(Errc::kIo, "the end of the contract cannot be kept");
  }
  // It may be gone already, when its drive could not be opened again.
  co_await stop_serving(turn->nqn, contract.nsid);
  co_return Result<void>{};
}

task::Task<void> Server::forget_contract(rack::Contract contract) {
  const Attempt<Turn> turn = co_await take_turn(contract.nqn);
  if (!turn || changes_[turn->nqn].ended.erase(contract.id) == 0) co_return;
  // If this cannot be kept, the next start finds nothing to remove, and forgets it then.
  [[maybe_unused]] const Attempt<void> kept =
      keep(fmt::format("nothing is left of contract {}", uuid_text(contract.id)));
}

std::vector<rack::Contract> Server::ended_contracts() const {
  std::vector<rack::Contract> all;
  for (const auto& [nqn, changes] : changes_) {
    for (const auto& [id, contract] : changes.ended) all.push_back(contract);
  }
  return all;
}

std::vector<rack::Contract> Server::contracts() const {
  std::vector<rack::Contract> all;
  for (const auto& [nqn, changes] : changes_) {
    for (const auto& [id, contract] : changes.contracts) all.push_back(contract);
  }
  return all;
}

Attempt<void> Server::check_free(const ServedDrive& drive) const {
  const auto changes = changes_.find(drive.nqn);
  if (changes == changes_.end()) return {};
  for (const auto& [id, contract] : changes->second.contracts) {
    if (contract.nsid != drive.space.nsid) continue;
    return refuse(
        fmt::format("drive {} is space that drive {} of {} has by contract {}: 'cairn drive "
                    "release {}' gives it back",
                    drive.name, contract.drive, contract.owner, uuid_text(id), contract.drive));
  }
  return {};
}

}  // namespace cairn::server
