// SPDX-License-Identifier: Apache-2.0
#include "apps/box/box_rack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/box/stacks.h"
#include "fabric/host/uuid.h"
#include "rack/record_format.h"
#include "rack/space_command.h"

namespace cairn::apps {

BoxRack::BoxRack(env::Env& env, Box& box, RackOptions options, RackHooks hooks)
    : env_(env), box_(box), options_(std::move(options)), hooks_(std::move(hooks)) {}

task::Task<Attempt<void>> BoxRack::open() {
  Attempt<std::vector<rack::Shelf>> shelves = this->shelves();
  if (!shelves) co_return std::unexpected(shelves.error());
  if (const Attempt<void> swept = sweep(); !swept) co_return std::unexpected(swept.error());
  Attempt<std::unique_ptr<meta::Store>> store = co_await hooks_.open_store(env_, options_.store);
  if (!store) co_return std::unexpected(store.error());
  store_ = std::move(*store);
  rack::LandlordOptions options{
      .box = options_.name.empty() ? shelves->front().place.address : options_.name,
      .shelves = std::move(*shelves),
      .term = options_.term,
      .expiry = options_.expiry,
      .log = [this](std::string line) {
        if (hooks_.log) hooks_.log(LogLevel::kInfo, line);
      }};
  landlord_ = std::make_unique<rack::Landlord>(env_, *store_, static_cast<rack::House&>(*this),
                                               std::move(options), box_.contracts());
  box_.registry().on_vendor_command(
      [this](nvme::VendorCommand command) { return answer(std::move(command)); });
  landlord_->start();
  co_return Attempt<void>{};
}

task::Task<void> BoxRack::close() {
  box_.registry().on_vendor_command({});
  if (landlord_ != nullptr) co_await landlord_->close();
  if (store_ != nullptr) co_await store_->close();
}

task::Task<nvme::Answer> BoxRack::answer(nvme::VendorCommand command) {
  Result<rack::SpaceRequest> request = rack::decode_request(command.data);
  if (!request) co_return rack::answer_of(fail(request.error()));
  const Result<uint32_t> outcome =
      co_await landlord_->ask({.host = command.host_nqn, .nqn = command.nqn}, std::move(*request));
  if (!outcome && hooks_.log) {
    hooks_.log(LogLevel::kInfo, fmt::format("{} asked for space and was refused: {}",
                                            command.host_nqn, outcome.error().text()));
  }
  co_return rack::answer_of(outcome);
}

Attempt<std::vector<rack::Shelf>> BoxRack::shelves() const {
  std::vector<rack::Shelf> all;
  for (const RackShelf& each : options_.shelves) {
    const Attempt<std::string> nqn = box_.find(each.subsystem);
    if (!nqn) return refuse(fmt::format("shelf {}: {}", each.name, nqn.error().text));
    const std::optional<rack::Place> place = box_.place_of(*nqn);
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

Attempt<void> BoxRack::sweep() const {
  std::set<std::string> needed;
  for (const rack::Contract& each : box_.contracts()) {
    needed.insert(fabric::uuid_text(each.id));
  }
  for (const RackShelf& shelf : options_.shelves) {
    if (shelf.folder.empty() || !hooks_.sweep) continue;
    const Attempt<std::vector<std::string>> left = hooks_.sweep(shelf.folder, needed);
    if (!left) return std::unexpected(left.error());
    for (const std::string& path : *left) {
      if (hooks_.log) {
        hooks_.log(LogLevel::kWarn, fmt::format("{} belongs to no contract of this box and is left "
                                                "alone: remove it if nobody needs what is in it",
                                                path));
      }
    }
  }
  return {};
}

// Empty: it is in memory.
std::string BoxRack::file_of(const rack::Contract& contract) const {
  const auto shelf = std::ranges::find(options_.shelves, contract.shelf, &RackShelf::name);
  if (shelf == options_.shelves.end() || shelf->folder.empty()) return {};
  return fmt::format("{}/{}", shelf->folder, fabric::uuid_text(contract.id));
}

// What a contract promises in a second is also the most it gets.
std::string BoxRack::drive_of(const rack::Contract& contract) const {
  const std::string file = file_of(contract);
  const rack::Amount& amount = contract.amount;
  const std::string space = file.empty() ? fmt::format("mem:size={}", amount.bytes)
                                         : fmt::format("file:{},size={}", file, amount.bytes);
  std::string limits;
  if (amount.iops > 0) limits += fmt::format(", iops={}", amount.iops);
  if (amount.bandwidth > 0) limits += fmt::format(", bytes={}", amount.bandwidth);
  return limits.empty() ? space : fmt::format("limit({}{})", space, limits);
}

task::Task<Result<uint32_t>> BoxRack::add(rack::Contract contract) {
  nvme::NamespaceOptions options;
  if (const Attempt<void> taken = take_drive(drive_of(contract), options); !taken) {
    if (hooks_.log) hooks_.log(LogLevel::kError, taken.error().text);
    co_return fail(Errc::kIo, "the space cannot be made");
  }
  const std::string file = file_of(contract);
  const Result<uint32_t> nsid = co_await box_.add_contract(std::move(contract), std::move(options));
  if (!nsid && !file.empty() && hooks_.remove_file) hooks_.remove_file(file);
  co_return nsid;
}

bool BoxRack::is_used(const rack::Contract& contract) const {
  return std::ranges::any_of(
      box_.registry().controllers(contract.nqn), [&contract](const nvme::ControllerInfo& each) {
        return each.host_nqn == contract.owner && each.queues > 1;  // more than the admin queue
      });
}

task::Task<Result<void>> BoxRack::confirm(rack::Contract contract) {
  return box_.confirm_contract(std::move(contract));
}

task::Task<Result<void>> BoxRack::remove(rack::Contract contract) {
  const std::string file = file_of(contract);
  const Result<void> removed = co_await box_.remove_contract(std::move(contract));
  if (removed && !file.empty() && hooks_.remove_file) hooks_.remove_file(file);
  co_return removed;
}

}  // namespace cairn::apps
