// SPDX-License-Identifier: Apache-2.0
#include "server/serve/rack_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "rack/record_format.h"
#include "rack/space_command.h"
#include "server/open/take_drive.h"

namespace cairn::server {

RackMember::RackMember(env::Env& env, Server& server, RackOptions options, RackHooks hooks)
    : env_(env), server_(server), options_(std::move(options)), hooks_(std::move(hooks)) {}

task::Task<Attempt<void>> RackMember::open() {
  Attempt<std::vector<rack::Shelf>> shelves = this->shelves();
  if (!shelves) co_return std::unexpected(shelves.error());
  co_await finish_ended();
  const Attempt<std::map<std::string, uint64_t>> strays = sweep();
  if (!strays) co_return std::unexpected(strays.error());
  for (rack::Shelf& shelf : *shelves) {
    const auto taken = strays->find(shelf.name);
    if (taken == strays->end()) continue;
    shelf.room.bytes -= std::min(shelf.room.bytes, taken->second);
  }
  Attempt<std::unique_ptr<meta::Store>> store = co_await hooks_.open_store(env_, options_.store);
  if (!store) co_return std::unexpected(store.error());
  store_ = std::move(*store);
  rack::LenderOptions options{
      .box = options_.name.empty() ? shelves->front().place.address : options_.name,
      .shelves = std::move(*shelves),
      .term = options_.term,
      .expiry = options_.expiry,
      .log = [this](std::string line) { log(config::LogLevel::kInfo, line); }};
  // Of those that have ended, and whose files are still there, the space is not free.
  std::vector<rack::Contract> contracts = server_.contracts();
  for (rack::Contract& each : server_.ended_contracts()) {
    each.is_confirmed = true;  // nobody asks the store about them
    contracts.push_back(std::move(each));
  }
  lender_ = std::make_unique<rack::Lender>(env_, *store_, static_cast<rack::LentSpace&>(*this),
                                           std::move(options), std::move(contracts));
  server_.nvme().registry().on_vendor_command(
      [this](nvme::VendorCommand command) { return answer(std::move(command)); });
  lender_->start();
  co_return Attempt<void>{};
}

task::Task<void> RackMember::close() {
  server_.nvme().registry().on_vendor_command({});
  if (lender_ != nullptr) co_await lender_->close();
  if (store_ != nullptr) co_await store_->close();
}

task::Task<nvme::Answer> RackMember::answer(nvme::VendorCommand command) {
  Result<rack::SpaceRequest> request = rack::decode_request(command.data);
  if (!request) co_return rack::answer_of(fail(request.error()));
  const Result<uint32_t> outcome =
      co_await lender_->ask({.host = command.host_nqn, .nqn = command.nqn}, std::move(*request));
  if (!outcome) {
    log(config::LogLevel::kInfo, fmt::format("{} asked for space and was refused: {}",
                                             command.host_nqn, outcome.error().text()));
  }
  co_return rack::answer_of(outcome);
}

Attempt<std::vector<rack::Shelf>> RackMember::shelves() const {
  std::vector<rack::Shelf> all;
  for (const RackShelf& each : options_.shelves) {
    const Attempt<std::string> nqn = server_.nvme().find(each.subsystem);
    if (!nqn) return refuse(fmt::format("shelf {}: {}", each.name, nqn.error().text));
    const std::optional<rack::Endpoint> place = server_.nvme().endpoint_of(*nqn);
    if (!place) {
      return refuse(
          fmt::format("shelf {} cannot be offered: no listener of {} has an address that others "
                      "can be told: give one with advertise in [[listener]] or --advertise",
                      each.name, *nqn));
    }
    all.push_back({.name = each.name, .place = *place, .room = each.room, .hosts = each.hosts});
  }
  return all;
}

task::Task<void> RackMember::finish_ended() {
  for (rack::Contract& each : server_.ended_contracts()) {
    // One that stays is counted, and tried again at the next start or when its owner asks.
    [[maybe_unused]] const Result<void> finished = co_await finish(std::move(each));
  }
}

task::Task<Result<void>> RackMember::finish(rack::Contract contract) {
  const std::string file = file_of(contract);
  if (file.empty()) {
    log(config::LogLevel::kWarn,
        fmt::format("contract {} has ended, and its shelf {} is not configured any more: remove "
                    "its file by hand if there is one",
                    uuid_text(contract.id), contract.shelf));
  } else if (hooks_.remove_file) {
    const Attempt<void> removed = hooks_.remove_file(file);
    if (!removed) {
      log(config::LogLevel::kError,
          fmt::format("contract {} has ended, and its space is not free yet: {}",
                      uuid_text(contract.id), removed.error().text));
      co_return fail(Errc::kIo, "the file of the contract cannot be removed");
    }
  }
  co_await server_.forget_contract(std::move(contract));
  co_return Result<void>{};
}

Attempt<std::map<std::string, uint64_t>> RackMember::sweep() const {
  std::set<std::string> needed;
  for (const rack::Contract& each : server_.contracts()) needed.insert(uuid_text(each.id));
  for (const rack::Contract& each : server_.ended_contracts()) {
    needed.insert(uuid_text(each.id));
  }
  std::map<std::string, uint64_t> taken;
  for (const RackShelf& shelf : options_.shelves) {
    if (shelf.folder.empty() || !hooks_.sweep) continue;
    const Attempt<std::vector<StrayFile>> left = hooks_.sweep(shelf.folder, needed);
    if (!left) return std::unexpected(left.error());
    for (const StrayFile& stray : *left) {
      taken[shelf.name] += stray.bytes;
      log(config::LogLevel::kWarn,
          fmt::format(
              "{} belongs to no contract of this box and is left alone, and the {} it takes "
              "are not offered: remove it if nobody needs what is in it",
              stray.path, text_bytes(stray.bytes)));
    }
  }
  return taken;
}

// Empty: it is in memory.
std::string RackMember::file_of(const rack::Contract& contract) const {
  const auto shelf = std::ranges::find(options_.shelves, contract.shelf, &RackShelf::name);
  if (shelf == options_.shelves.end() || shelf->folder.empty()) return {};
  return fmt::format("{}/{}", shelf->folder, uuid_text(contract.id));
}

// What a contract promises in a second is also the most it gets.
std::string RackMember::drive_of(const rack::Contract& contract) const {
  const std::string file = file_of(contract);
  const rack::Amount& amount = contract.amount;
  const std::string space = file.empty() ? fmt::format("mem:size={}", amount.bytes)
                                         : fmt::format("file:{},size={}", file, amount.bytes);
  std::string limits;
  if (amount.iops > 0) limits += fmt::format(", iops={}", amount.iops);
  if (amount.bandwidth > 0) limits += fmt::format(", bytes={}", amount.bandwidth);
  return limits.empty() ? space : fmt::format("limit({}{})", space, limits);
}

task::Task<Result<uint32_t>> RackMember::add(rack::Contract contract) {
  nvme::NamespaceOptions options;
  if (const Attempt<void> taken = take_drive(drive_of(contract), LookUp::kWhenOpened, options);
      !taken) {
    log(config::LogLevel::kError, taken.error().text);
    co_return fail(Errc::kIo, "the space cannot be made");
  }
  const std::string file = file_of(contract);
  const Result<uint32_t> nsid =
      co_await server_.add_contract(std::move(contract), std::move(options));
  if (!nsid && !file.empty() && hooks_.remove_file) {
    // Blank as it is, the next start sweeps one that stays.
    [[maybe_unused]] const Attempt<void> removed = hooks_.remove_file(file);
  }
  co_return nsid;
}

bool RackMember::is_used(const rack::Contract& contract) const {
  const std::vector<rack::Contract> ended = server_.ended_contracts();
  if (std::ranges::find(ended, contract.id, &rack::Contract::id) != ended.end()) return false;
  return std::ranges::any_of(server_.nvme().registry().controllers(contract.nqn),
                             [&contract](const nvme::ControllerInfo& each) {
                               return each.host_nqn == contract.owner &&
                                      each.queues > 1;  // more than the admin queue
                             });
}

task::Task<Result<void>> RackMember::confirm(rack::Contract contract) {
  return server_.confirm_contract(std::move(contract));
}

task::Task<Result<void>> RackMember::remove(rack::Contract contract) {
  const bool has_file = !file_of(contract).empty();
  const Result<void> removed = co_await server_.remove_contract(contract, has_file);
  if (!removed || !has_file) co_return removed;
  const Result<void> finished = co_await finish(std::move(contract));
  co_return finished;
}

}  // namespace cairn::server
