// SPDX-License-Identifier: Apache-2.0
#include "rack/ledger.h"

#include <algorithm>
#include <utility>

namespace cairn::rack {

namespace {

uint64_t less(uint64_t room, uint64_t taken) { return room > taken ? room - taken : 0; }

}  // namespace

bool Shelf::allows(std::string_view host) const {
  return hosts.empty() || std::ranges::find(hosts, host) != hosts.end();
}

Ledger::Ledger(std::vector<Shelf> shelves, std::vector<Contract> contracts)
    : shelves_(std::move(shelves)) {
  for (Contract& each : contracts) add(std::move(each));
}

const Contract* Ledger::find(const ContractId& id) const {
  const auto found = contracts_.find(id);
  return found == contracts_.end() ? nullptr : &found->second;
}

const Shelf* Ledger::shelf(std::string_view name) const {
  const auto found = std::ranges::find(shelves_, name, &Shelf::name);
  return found == shelves_.end() ? nullptr : &*found;
}

Amount Ledger::spare(std::string_view name) const {
  const Shelf* from = shelf(name);
  if (from == nullptr) return {};
  Amount left = from->room;
  for (const auto& [id, contract] : contracts_) {
    if (contract.shelf != name) continue;
    left.bytes = less(left.bytes, contract.amount.bytes);
    left.iops = less(left.iops, contract.amount.iops);
    left.bandwidth = less(left.bandwidth, contract.amount.bandwidth);
  }
  return left;
}

Result<Contract> Ledger::drafted(const Asker& asker, const SpaceRequest& request) const {
  const Contract draft{.id = request.id,
                       .nqn = asker.nqn,
                       .owner = asker.host,
                       .drive = request.drive,
                       .shelf = request.shelf,
                       .amount = request.amount};
  if (const Contract* made = find(request.id)) {
    Contract same = draft;
    same.nsid = made->nsid;
    same.is_confirmed = made->is_confirmed;
    if (same == *made) return same;
    return fail(Errc::kExists, "another contract has this id");
  }
  const Shelf* from = shelf(request.shelf);
  if (from == nullptr || from->place.nqn != asker.nqn) {
    return fail(Errc::kNotFound, "this subsystem offers no such shelf");
  }
  if (!from->allows(asker.host)) return fail(Errc::kDenied, "the shelf is not for this host");
  if (const Result<void> sound = check_amount(request.amount); !sound) return fail(sound.error());
  if (contracts_.size() >= kContractsMax) return fail(Errc::kLimit, "the box has many contracts");
  if (!request.amount.fits(spare(request.shelf))) {
    return fail(Errc::kNoSpace, "the shelf has not so much to spare");
  }
  return draft;
}

Result<void> Ledger::may_release(const Asker& asker, const Contract& contract) const {
  if (contract.owner == asker.host && contract.nqn == asker.nqn) return {};
  return fail(Errc::kDenied, "the contract is another host's");
}

void Ledger::add(Contract contract) {
  const ContractId id = contract.id;
  contracts_.insert_or_assign(id, std::move(contract));
}

void Ledger::confirm(const ContractId& id) {
  const auto found = contracts_.find(id);
  if (found != contracts_.end()) found->second.is_confirmed = true;
}

}  // namespace cairn::rack
