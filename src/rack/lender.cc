// SPDX-License-Identifier: Apache-2.0
#include "rack/lender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error_text.h"
#include "base/uuid.h"
#include "rack/pledge.h"
#include "task/deadline.h"

namespace cairn::rack {

namespace {

std::string text_of(const Contract& contract) {
  return fmt::format("{} of shelf {} for drive {} of {} (contract {})",
                     text_bytes(contract.amount.bytes), contract.shelf, contract.drive,
                     contract.owner, uuid_text(contract.id));
}

}  // namespace

Lender::Lender(env::Env& env, meta::Store& store, LentSpace& space, LenderOptions options,
               std::vector<Contract> contracts)
    : env_(env),
      store_(store),
      space_(space),
      options_(std::move(options)),
      ledger_(options_.shelves, std::move(contracts)),
      publisher_(env, store,
                 {.expiry = options_.expiry,
                  .offers = [this] { return offers(); },
                  .report =
                      [this](const Result<void>& published) {
                        log(published ? "offers are on the billboard again"
                                      : fmt::format("the billboard cannot be reached, so nobody "
                                                    "sees what is offered: {}",
                                                    error_text(published.error())));
                      }}) {
  for (const auto& [id, contract] : ledger_.contracts()) {
    if (!contract.is_confirmed) terms_[id] = env_.now() + options_.term;
  }
}

void Lender::start() {
  publisher_.start();
  gate_.spawn(watch_terms());
}

std::vector<Offer> Lender::offers() const {
  std::vector<Offer> all;
  for (const Shelf& shelf : ledger_.shelves()) {
    Offer& offer = all.emplace_back(Offer{.box = options_.box,
                                          .shelf = shelf.name,
                                          .place = shelf.place,
                                          .spare = ledger_.spare(shelf.name)});
    offer.spare.bytes -= offer.spare.bytes % kUnit;
  }
  return all;
}

task::Task<Result<uint32_t>> Lender::ask(Asker asker, SpaceRequest request) {
  if (!gate_.enter()) co_return fail(Errc::kClosed, "the box is about to end");
  Result<uint32_t> answer = co_await answer_in_turn(std::move(asker), std::move(request));
  gate_.leave();
  co_return answer;
}

task::Task<Result<uint32_t>> Lender::answer_in_turn(Asker asker, SpaceRequest request) {
  const Result<void> acquired = co_await turn_.acquire();
  if (!acquired) co_return fail(acquired.error());
  const task::Units held(turn_, 1);
  if (request.verb != SpaceRequest::Verb::kReserve) {
    co_return co_await release(std::move(asker), std::move(request));
  }
  co_return co_await reserve(std::move(asker), std::move(request));
}

task::Task<Result<uint32_t>> Lender::reserve(Asker asker, SpaceRequest request) {
  Result<Contract> contract = ledger_.drafted(asker, request);
  if (!contract) co_return fail(contract.error());
  if (contract->nsid != 0) co_return contract->nsid;  // made before
  const Result<uint32_t> nsid = co_await space_.add(*contract);
  if (!nsid) co_return fail(nsid.error());
  contract->nsid = *nsid;
  terms_[contract->id] = env_.now() + options_.term;
  terms_moved_.set();
  log(fmt::format("reserved {}", text_of(*contract)));
  ledger_.add(std::move(*contract));
  publisher_.changed();
  co_return *nsid;
}

task::Task<Result<uint32_t>> Lender::release(Asker asker, SpaceRequest request) {
  const Contract* contract = ledger_.find(request.id);
  if (contract == nullptr) co_return 0u;
  if (const Result<void> may = ledger_.may_release(asker, *contract); !may) {
    co_return fail(may.error());
  }
  if (request.verb != SpaceRequest::Verb::kForceRelease && space_.is_used(*contract)) {
    co_return fail(Errc::kMismatch, "its owner is connected, and may be using it");
  }
  if (request.verb == SpaceRequest::Verb::kMayRelease) co_return 0u;
  const Result<void> given = co_await give_back(request.id);
  if (!given) co_return fail(given.error());
  co_return 0u;
}

// In its turn.
task::Task<Result<void>> Lender::give_back(ContractId id) {
  const Contract* found = ledger_.find(id);
  if (found == nullptr) co_return Result<void>{};
  const Contract contract = *found;
  const Result<void> removed = co_await space_.remove(contract);
  if (!removed) {
    log(fmt::format("cannot take back {}: {}", text_of(contract), error_text(removed.error())));
    co_return removed;
  }
  ledger_.remove(id);
  terms_.erase(id);
  log(fmt::format("took back {}", text_of(contract)));
  publisher_.changed();
  co_return Result<void>{};
}

task::Task<void> Lender::watch_terms() {
  while (!stop_.requested()) {
    terms_moved_.reset();
    const auto first =
        std::ranges::min_element(terms_, {}, [](const auto& each) { return each.second; });
    const Time when = first == terms_.end() ? Time::never() : first->second;
    if (env_.now() < when) {
      task::Deadline deadline(env_, when, stop_.token());
      [[maybe_unused]] const Result<void> moved = co_await terms_moved_.wait(deadline.token());
      continue;
    }
    const ContractId id = first->first;
    const Contract* contract = ledger_.find(id);
    bool settled = contract == nullptr;
    if (contract != nullptr) settled = co_await settle_one(*contract);
    if (settled) {
      terms_.erase(id);
    } else if (const auto term = terms_.find(id); term != terms_.end()) {
      term->second = env_.now() + options_.term / 4;
    }
  }
}

task::Task<bool> Lender::settle_one(Contract contract) {
  task::Deadline deadline(env_, env_.now() + std::max(options_.term, 1_s), stop_.token());
  const Result<Verdict> verdict = co_await settle(store_, contract, deadline.token());
  if (!verdict) {
    if (!stop_.requested() && verdict.error() != Errc::kMismatch) {
      log(
          fmt::format("the term of {} is over and the metadata store does not say what became of "
                      "it, so it is kept: {}",
                      text_of(contract), error_text(verdict.error())));
    }
    co_return false;
  }
  const Result<void> acquired = co_await turn_.acquire(1, stop_.token());
  if (!acquired) co_return false;
  const task::Units held(turn_, 1);
  if (ledger_.find(contract.id) == nullptr) co_return true;  // released meanwhile
  if (*verdict == Verdict::kVoid) {
    const Result<void> given = co_await give_back(contract.id);
    co_return given.has_value();
  }
  contract.is_confirmed = true;
  const Result<void> kept = co_await space_.confirm(contract);
  if (!kept) co_return false;
  ledger_.confirm(contract.id);
  co_return true;
}

task::Task<void> Lender::close() {
  stop_.request();
  co_await gate_.close();
  co_await publisher_.close();
}

}  // namespace cairn::rack
