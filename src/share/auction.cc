// SPDX-License-Identifier: Apache-2.0
#include "share/auction.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::share {

namespace {

constexpr uint64_t kWantMax = uint64_t{1} << 50;
constexpr uint64_t kEpochsPerSecond = static_cast<uint64_t>((1_s).ns / kEpoch.ns);
// The least that a weighted byte moves: what is written costs at most 9 times as much.
constexpr uint32_t kPermilleMin = 100;

std::string megabytes(uint64_t bytes_per_s) {
  return fmt::format("{} MB/s", (bytes_per_s + 500'000) / 1'000'000);
}

}  // namespace

Result<void> check_terms(const Terms& terms) {
  if (terms.weight == 0 || terms.weight > kWeightMax) {
    return fail(Errc::kInvalid, "the weight of a volume is 1 to 1000");
  }
  if (terms.floor > kRateMax || terms.cap > kRateMax) {
    return fail(Errc::kInvalid, "a floor or a cap is beyond what there can be");
  }
  if (terms.cap != 0 && terms.cap < terms.floor) {
    return fail(Errc::kInvalid, "the cap of a volume is less than its floor");
  }
  return {};
}

int64_t Auction::of_epoch(uint64_t bytes_per_s) {
  return static_cast<int64_t>(bytes_per_s / kEpochsPerSecond);
}

uint64_t Auction::bytes_of(const Member& member, uint64_t weighted) {
  return weighted * (member.permille[0] + member.permille[1]) / 1000;
}
uint64_t Auction::weighted_of(const Member& member, uint64_t bytes) {
  return bytes * 1000 / (member.permille[0] + member.permille[1]);
}

void Auction::Pipe::refill() {
  for (int64_t& each : left) each = of_epoch(rate) + std::min<int64_t>(each, 0);
}

void Auction::set_drive(DriveId id, DriveRates rates) {
  Drive& drive = drives_[id];
  drive.pipe.rate = rates.pipe;
  drive.rates = std::move(rates);
}

void Auction::set_port(PortId id, std::string name, uint64_t bytes_per_s) {
  Port& port = ports_[id];
  port.name = std::move(name);
  port.pipe.rate = bytes_per_s;
}

std::vector<Auction::DrivePath> Auction::behind(PortId port, const std::vector<DriveId>& drives) {
  std::vector<DrivePath> paths;
  for (const DriveId drive : drives) paths.push_back({.drive = drive, .port = port});
  return paths;
}

Attempt<void> Auction::check(std::string_view volume, const Terms& terms,
                             const std::vector<DrivePath>& paths) const {
  if (terms.weight == 0 || terms.weight > kWeightMax) {
    return refuse(
        fmt::format("The weight of {} must be 1 to {}, not {}.", volume, kWeightMax, terms.weight));
  }
  if (terms.cap != 0 && terms.cap < terms.floor) {
    return refuse(fmt::format("The cap of {}, {}, is less than its floor of {}.", volume,
                              megabytes(terms.cap), megabytes(terms.floor)));
  }
  if (paths.empty() || !std::ranges::all_of(paths, [&](const DrivePath& each) {
        return drives_.contains(each.drive) && ports_.contains(each.port);
      })) {
    return refuse(fmt::format("{} lies on a drive or behind a port that is not known.", volume));
  }
  if (terms.floor == 0) return {};
  std::map<PortId, uint64_t> on_ports;
  std::map<DriveId, uint64_t> promised;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.volume == volume) continue;
    for (const auto& [drive, member] : tenant.members) {
      promised[drive] += tenant.terms.floor / tenant.members.size();
      on_ports[member.port] += tenant.terms.floor / tenant.members.size();
    }
  }
  const auto refuse_floor = [&](const std::string& where, uint64_t most, uint64_t taken) {
    return refuse(fmt::format(
        "The floor of {}, {}, cannot be kept: {} can promise {}, of which {} are promised to "
        "others. Take a floor that fits, or spread the volume over more drives.",
        volume, megabytes(terms.floor), where, megabytes(most), megabytes(taken)));
  };
  const uint64_t part = terms.floor / paths.size();
  std::map<PortId, uint64_t> wanted;
  for (const DrivePath& each : paths) wanted[each.port] += part;
  for (const auto& [id, bytes] : wanted) {
    const Port& port = ports_.at(id);
    const uint64_t carries = port.pipe.rate / 100 * kFloorsPercent;
    if (on_ports[id] + bytes > carries) return refuse_floor(port.name, carries, on_ports[id]);
  }
  for (const DrivePath& each : paths) {
    const DriveRates& rates = drives_.at(each.drive).rates;
    const uint64_t most = rates.guaranteed / 100 * kFloorsPercent;
    if (promised[each.drive] + part > most) {
      return refuse_floor(fmt::format("drive {}", rates.name), most, promised[each.drive]);
    }
  }
  return {};
}

Attempt<TenantId> Auction::open(std::string volume, const Terms& terms,
                                const std::vector<DrivePath>& paths) {
  const Attempt<void> checked = check(volume, terms, paths);
  if (!checked) return std::unexpected(checked.error());
  for (auto& [id, tenant] : tenants_) {
    if (tenant.volume != volume) continue;
    close(id);
    break;
  }
  const TenantId id(next_tenant_++);
  Tenant& tenant = tenants_[id];
  tenant.volume = std::move(volume);
  tenant.terms = terms;
  tenant.cap_left = of_epoch(terms.cap);
  for (const DrivePath& each : paths) {
    Member& member = tenant.members[each.drive];
    if (member.tenant != nullptr) continue;  // named twice
    member.tenant = &tenant;
    member.port = each.port;
    member.permille = {0, 1000};
    drives_.at(each.drive).members.push_back(&member);
  }
  return id;
}

Attempt<void> Auction::change(std::string_view volume, const Terms& terms) {
  for (auto& [id, tenant] : tenants_) {
    if (tenant.volume != volume) continue;
    std::vector<DrivePath> paths;
    for (const auto& [drive, member] : tenant.members) {
      paths.push_back({.drive = drive, .port = member.port});
    }
    Attempt<void> checked = check(volume, terms, paths);
    if (checked) tenant.terms = terms;
    return checked;
  }
  return refuse(fmt::format("Nobody has {} open.", volume));
}

void Auction::leave(Tenant& tenant) {
  for (auto& [id, member] : tenant.members) std::erase(drives_.at(id).members, &member);
}

void Auction::close(TenantId id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return;
  leave(found->second);
  tenants_.erase(found);
}

void Auction::begin_epoch() {
  ++epoch_;
  is_learning_ = false;
  missed_floors_ = 0;
  std::vector<Drive*> drives;
  for (auto& [id, drive] : drives_) {
    // What was lent is paid back; what was not asked for is gone.
    drive.left = of_epoch(drive.rates.rate) + std::min<int64_t>(drive.left, 0);
    drive.pipe.refill();
    drives.push_back(&drive);
  }
  for (auto& [id, port] : ports_) port.pipe.refill();
  for (auto& [id, tenant] : tenants_) {
    tenant.cap_left = of_epoch(tenant.terms.cap);
    for (auto& [drive, member] : tenant.members) {
      const bool is_idle = member.heard + kIdleEpochs < epoch_;
      member.granted_before = std::exchange(member.granted, 0);
      member.given_before = std::exchange(member.given_back, 0);
      member.is_settled = member.granted_before == 0;
      member.limit = is_idle ? 0 : member.next;
      member.limit_before = member.limit;
      member.ahead = 0;
      member.state = member.limit == 0 ? State::kIdle : State::kActive;
    }
  }
  serve_floors();
  share_out(drives);
}

void Auction::advance(Time now) {
  if (now < ends_) return;
  if (now - ends_ > static_cast<int64_t>(kIdleEpochs) * kEpoch) {
    // It slept: what was granted is of long ago, and nobody's word is new enough.
    epoch_ += kIdleEpochs;
    ends_ = now;
  }
  while (ends_ <= now) {
    begin_epoch();
    ends_ = ends_ + kEpoch;
  }
}

void Auction::take_back(Drive& drive, Member& member, uint64_t weighted) {
  drive.left += static_cast<int64_t>(weighted);
  Port& port = ports_.at(member.port);
  for (size_t way = 0; way < 2; ++way) {
    const auto bytes = static_cast<int64_t>(weighted * member.permille[way] / 1000);
    drive.pipe.left[way] += bytes;
    port.pipe.left[way] += bytes;
  }
}

void Auction::settle(Drive& drive, Member& member, const SliceRequest& request) {
  if (request.auction != incarnation_) return;
  if (request.epoch == epoch_ && request.given_back > member.given_back) {
    const uint64_t all = std::min(request.given_back, member.granted);
    take_back(drive, member, all - std::min(all, member.given_back));
    member.given_back = std::max(member.given_back, all);
  }
  if (member.is_settled || request.before + 1 != epoch_) return;
  member.is_settled = true;
  const uint64_t gone = std::max(request.spent_before, member.given_before);
  take_back(drive, member, member.granted_before - std::min(gone, member.granted_before));
}

// By weights, of the rest of the epoch; or its floor, if that is more.
uint64_t Auction::fair_share(const Drive& drive, const Member& member, Time now) const {
  uint64_t weights = 0;
  for (const Member* each : drive.members) {
    if (each->granted > 0 || each->limit > 0) weights += each->tenant->terms.weight;
  }
  const Terms& terms = member.tenant->terms;
  const auto epoch = static_cast<uint64_t>(of_epoch(drive.rates.rate));
  const uint64_t by_weight = epoch * terms.weight / std::max<uint64_t>(weights, terms.weight);
  const auto floor = static_cast<uint64_t>(of_epoch(terms.floor));
  const uint64_t by_floor = weighted_of(member, floor) / member.tenant->members.size();
  const auto left = static_cast<uint64_t>(std::clamp(ends_ - now, Duration{}, kEpoch).ns);
  return std::max(by_weight, by_floor) / 1000 * (left * 1000 / static_cast<uint64_t>(kEpoch.ns));
}

// To whoever got less than its share of the rest of the epoch: so nobody waits for an epoch to end
// in order to begin. All that is lent of a drive is at most half an epoch.
void Auction::lend(Drive& drive, Member& member, Time now) {
  const uint64_t fair = fair_share(drive, member, now);
  const uint64_t most = std::min(member.limit, fair);
  if (member.granted >= most || member.limit_before >= fair) return;
  const int64_t left = (of_epoch(drive.rates.rate) / 2) + drive.left;
  grant(drive, member,
        std::min({most - member.granted, room_for(drive, member, true),
                  static_cast<uint64_t>(std::max<int64_t>(left, 0))}));
}

Result<SliceGrant> Auction::request(TenantId id, const SliceRequest& request, Time now) {
  advance(now);
  const auto tenant = tenants_.find(id);
  if (tenant == tenants_.end()) return fail(Errc::kNotFound, "the volume was opened again");
  const auto found = tenant->second.members.find(request.drive);
  if (found == tenant->second.members.end()) {
    return fail(Errc::kNotFound, "the volume has nothing on that drive");
  }
  Member& member = found->second;
  Drive& drive = drives_.at(request.drive);
  settle(drive, member, request);
  member.heard = epoch_;
  member.next = std::min(request.next, kWantMax);
  member.permille = {std::min(request.in_permille, 1000U), std::min(request.out_permille, 1000U)};
  const uint64_t both = member.permille[0] + member.permille[1];
  // Nothing moves less than what is hardest to write.
  if (both < kPermilleMin || both > 1000) member.permille = {0, 1000};
  const bool is_of_now = request.auction == incarnation_ && request.epoch == epoch_;
  const uint64_t has = is_of_now ? std::min(request.has, member.granted) : 0;
  if (request.now > 0) {
    member.limit = std::max(member.limit, has + std::min(request.now, kWantMax));
    member.state = State::kActive;
  }
  if (!is_learning_ && member.limit > member.granted) {
    share_out({&drive});
    lend(drive, member, now);
  }
  return SliceGrant{
      .drive = request.drive,
      .auction = incarnation_,
      .epoch = epoch_,
      .granted = member.granted,
      // Those that want nothing leave theirs to the others, also while no auction answers.
      .equal = static_cast<uint64_t>(of_epoch(drive.rates.rate)) /
               std::max<size_t>(active(request.drive), 1),
      .left = ends_ - now,
      .is_learning = is_learning_};
}

size_t Auction::active(DriveId id) const {
  const auto drive = drives_.find(id);
  if (drive == drives_.end()) return 0;
  return static_cast<size_t>(std::ranges::count_if(drive->second.members, [&](const Member* each) {
    return each->granted > 0 || each->limit > 0 ||
           (each->next > 0 && each->heard + kIdleEpochs >= epoch_);
  }));
}

bool Auction::is_short(DriveId id) const {
  const auto drive = drives_.find(id);
  return drive != drives_.end() && active(id) > 1 &&
         std::ranges::any_of(drive->second.members, [](const Member* each) {
           return each->limit > each->granted && each->state == State::kDeferred;
         });
}

std::vector<Auction::Granted> Auction::granted() const {
  std::vector<Granted> all;
  for (const auto& [id, tenant] : tenants_) {
    for (const auto& [drive, member] : tenant.members) {
      if (member.granted > 0)
        all.push_back({.tenant = id, .drive = drive, .weighted = member.granted});
    }
  }
  return all;
}

std::vector<Auction::Standing> Auction::standings() const {
  std::vector<Standing> all;
  for (const auto& [id, tenant] : tenants_) {
    for (const auto& [drive, member] : tenant.members) {
      all.push_back({.volume = tenant.volume,
                     .drive = drive,
                     .state = member.state,
                     .granted = member.granted,
                     .wanted = member.limit});
    }
  }
  return all;
}

}  // namespace cairn::share
