// SPDX-License-Identifier: Apache-2.0
#include "arbiter/market/market.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace cairn::arbiter {

namespace {

using share::Auction;
using share::DriveId;
using share::PortId;

// What one tenant alone is granted of a drive in an epoch: more than any drive does.
constexpr uint64_t kAlone = uint64_t{1} << 40;

// "10.0.0.1:4420" of "nvme-tcp://10.0.0.1:4420/nqn?nsid=1".
std::string address_in(const std::string& uri) {
  const size_t begin = uri.find("://");
  if (begin == std::string::npos) return uri;
  return uri.substr(begin + 3, uri.find('/', begin + 3) - begin - 3);
}

// As a name of the view: it has bounds that a URI or an operator need not know.
std::string sound_name(std::string text) {
  if (text.size() > view::kNameMax) text.resize(view::kNameMax);
  for (char& each : text) each = each > ' ' && each < 127 ? each : '_';
  return text.empty() ? "box" : text;
}

DriveId drive_id(MegaVolId id) { return DriveId(id.value()); }

// Ports of all boxes, one after the other.
std::vector<PortId> first_ports(const Topology& topology) {
  std::vector<PortId> first;
  uint32_t ports = 0;
  for (const view::BoxSpec& box : topology.boxes) {
    first.emplace_back(ports);
    ports += box.ports;
  }
  return first;
}

std::vector<Auction::DrivePath> all_paths(const Topology& topology) {
  const std::vector<PortId> first = first_ports(topology);
  std::vector<Auction::DrivePath> paths;
  for (const auto& [id, spot] : topology.spots) {
    const PortId port(first[spot.box.value()].value() + spot.port);
    paths.push_back({.drive = drive_id(id), .port = port});
  }
  return paths;
}

void describe(Auction& auction, const Topology& topology, const MarketOptions& options) {
  const std::vector<PortId> first = first_ports(topology);
  for (size_t box = 0; box < topology.boxes.size(); ++box) {
    const view::BoxSpec& spec = topology.boxes[box];
    for (uint32_t port = 0; port < spec.ports; ++port) {
      auction.set_port(PortId(first[box].value() + port),
                       fmt::format("port {} of box {}", port, spec.name), spec.port_bytes_per_s);
    }
  }
  for (const auto& [id, spot] : topology.spots) {
    auction.set_drive(drive_id(id), {.name = fmt::format("{}/d{}", spot.box_name, id.value()),
                                     .rate = options.drive_bytes_per_s,
                                     .pipe = options.port_bytes_per_s,
                                     .guaranteed = options.drive_floor});
  }
}

}  // namespace

Topology topology_of(const Pool& pool, const MarketOptions& options) {
  Topology topology;
  std::map<std::string, uint16_t> boxes;
  std::map<std::string, std::map<std::string, uint16_t>> ports;
  for (const auto& [id, member] : pool.members()) {
    const std::string address = address_in(member.info.uri);
    const std::string name = sound_name(member.info.box.empty() ? address : member.info.box);
    if (!boxes.contains(name) && boxes.size() == view::kBoxesMax) continue;
    const auto box = boxes.try_emplace(name, static_cast<uint16_t>(boxes.size())).first->second;
    if (box == topology.boxes.size()) {
      topology.boxes.push_back(
          {.name = name, .ports = 0, .port_bytes_per_s = options.port_bytes_per_s, .drives = {}});
    }
    view::BoxSpec& spec = topology.boxes[box];
    std::map<std::string, uint16_t>& of_box = ports[name];
    // Beyond the last one they share that.
    const auto next = static_cast<uint16_t>(std::min<size_t>(of_box.size(), view::kPortsMax - 1));
    const uint16_t port = of_box.try_emplace(address, next).first->second;
    spec.ports = std::max<uint32_t>(spec.ports, port + 1U);
    topology.spots[id] = {.box = view::BoxId(box),
                          .port = port,
                          .index = static_cast<uint16_t>(spec.drives.size()),
                          .uri = member.info.uri,
                          .box_name = name};
    spec.drives.push_back({.name = fmt::format("d{}", id.value()),
                           .profile = {.bytes_per_s = options.drive_bytes_per_s}});
  }
  return topology;
}

Market::Running::Running(uint64_t its_incarnation, Topology its_topology,
                         const MarketOptions& options, Time now)
    : incarnation(its_incarnation),
      topology(std::move(its_topology)),
      controller(incarnation, topology.boxes),
      auction(incarnation, now),
      next_epoch(now) {
  describe(auction, topology, options);
  controller.admit_only({});
}

void Market::follow(const Pool& pool) {
  const Time now = env_.now();
  // Each epoch of the auction begins here: with what is known by then, and none unseen.
  if (running_ && now < running_->next_epoch && !running_->auction.is_over(now)) return;
  Topology topology = topology_of(pool, options_);
  if (topology.boxes.empty()) return running_.reset();
  if (!running_ || running_->topology.spots != topology.spots) {
    // Zero means none.
    const uint64_t incarnation = env_.rng().next() | 1;
    running_ = std::make_unique<Running>(incarnation, std::move(topology), options_, now);
  }
  running_->next_epoch = now + share::kEpoch;
  running_->controller.advance(now);
  set_rates();
  follow_volumes(pool);
  end_epoch(now);
  judge_conduct(pool);
}

void Market::end_epoch(Time now) {
  share::Auction& auction = running_->auction;
  if (auction.is_over(now)) running_->conduct.granted(auction.granted(), now);
  auction.advance(now);
}

void Market::admit_tenants() {
  std::map<uint64_t, std::string> tickets;
  for (const auto& [ticket, tenant] : running_->tenants) tickets[ticket] = tenant.volume;
  running_->controller.admit_only(std::move(tickets));
}

std::vector<Conduct::Use> Market::uses(Time now) const {
  std::map<std::pair<view::BoxId, uint16_t>, MegaVolId> drives;
  for (const auto& [id, spot] : running_->topology.spots) drives[{spot.box, spot.index}] = id;
  std::vector<view::DriveUse> seen = running_->controller.uses(now);
  std::map<view::ComponentId, size_t> users;
  for (const view::DriveUse& each : seen) ++users[each.drive];
  std::vector<Conduct::Use> all;
  for (view::DriveUse& each : seen) {
    const MegaVolId id = drives.at({each.drive.box, each.drive.index});
    const DriveSpot& spot = running_->topology.spots.at(id);
    const view::DriveView& drive = *running_->controller.drive(spot.box_name, spot.index);
    all.push_back({.volume = std::move(each.volume),
                   .drive = drive_id(id),
                   .seen_as = each.drive,
                   .weighted = each.read_bytes_per_s + (each.write_bytes_per_s *
                                                        drive.write_cost_x10 / view::kWriteCostMin),
                   .is_shared = users[each.drive] > 1,
                   .is_auctioned = running_->auction.active(drive_id(id)) > 1});
  }
  return all;
}

// Of the same time as what estimates say, or a volume would avoid what it filled itself.
void Market::note_parts(Time now) const {
  if (now < running_->parts_until) return;
  running_->parts_until = now + share::kEpoch;
  const std::vector<Conduct::Use> uses = this->uses(now);
  std::map<DriveId, uint64_t> all;
  for (const Conduct::Use& use : uses) all[use.drive] += use.weighted;
  running_->parts.clear();
  running_->used.clear();
  for (const Conduct::Use& use : uses) {
    if (use.weighted == 0) continue;
    const uint64_t part = use.weighted * 1000 / all[use.drive];
    const MegaVolId id(static_cast<uint16_t>(use.drive.value()));
    running_->used.insert(id);
    running_->parts[{id, use.volume}] = static_cast<int32_t>(part);
  }
}

void Market::judge_conduct(const Pool& pool) {
  const Time now = env_.now();
  if (!running_->conduct.is_due(now)) return;
  std::map<std::string_view, const Tenant*> tenants;
  for (const auto& [ticket, tenant] : running_->tenants) tenants[tenant.volume] = &tenant;
  std::vector<Conduct::Party> parties;
  for (const auto& [id, volume] : pool.volumes()) {
    if (volume.record.holder.empty()) continue;
    const auto found = tenants.find(volume.record.name);
    const Tenant* tenant = found == tenants.end() ? nullptr : found->second;
    parties.push_back({.volume = volume.record.name,
                       .client = volume.record.holder,
                       .tenant = tenant == nullptr ? share::TenantId() : tenant->id,
                       .trades = tenant != nullptr && tenant->trades,
                       .tells = tenant != nullptr});
  }
  running_->conduct.look(parties, uses(now), now);
  running_->controller.set_offenders(running_->conduct.offenders());
}

// What drives seem to take, from the next epoch on.
void Market::set_rates() {
  for (const auto& [id, spot] : running_->topology.spots) {
    const view::DriveView* seen = running_->controller.drive(spot.box_name, spot.index);
    if (seen == nullptr) continue;
    running_->auction.set_drive(drive_id(id),
                                {.name = fmt::format("{}/d{}", spot.box_name, id.value()),
                                 .rate = std::max(seen->rate, options_.drive_floor),
                                 .pipe = options_.port_bytes_per_s,
                                 .guaranteed = options_.drive_floor});
  }
}

void Market::follow_volumes(const Pool& pool) {
  std::map<std::string_view, const Volume*> volumes;
  for (const auto& [id, volume] : pool.volumes()) volumes[volume.record.name] = &volume;
  for (auto each = running_->tenants.begin(); each != running_->tenants.end();) {
    Tenant& tenant = each->second;
    const auto found = volumes.find(tenant.volume);
    const bool is_over = found == volumes.end() || found->second->record.holder != tenant.client;
    if (is_over) {
      if (tenant.trades) running_->auction.close(tenant.id);
      each = running_->tenants.erase(each);
      admit_tenants();
      continue;
    }
    if (tenant.terms != found->second->terms) {
      tenant.terms = found->second->terms;
      if (tenant.trades && !running_->auction.change(tenant.volume, tenant.terms)) open(tenant);
    }
    ++each;
  }
}

// A floor that drives which went away would have kept is not kept; all else of the terms is.
void Market::open(Tenant& tenant) {
  const std::vector<Auction::DrivePath> paths = all_paths(running_->topology);
  Attempt<share::TenantId> opened = running_->auction.open(tenant.volume, tenant.terms, paths);
  if (!opened) {
    share::Terms without = tenant.terms;
    without.floor = 0;
    opened = running_->auction.open(tenant.volume, without, paths);
  }
  tenant.trades = opened.has_value();
  if (opened) tenant.id = *opened;
}

Result<share::JoinReply> Market::join(const Pool& pool, const share::JoinRequest& request) {
  if (!running_) return fail(Errc::kNotFound, "the pool has no drives");
  const auto volume = std::ranges::find_if(
      pool.volumes(), [&](const auto& each) { return each.second.record.name == request.volume; });
  if (volume == pool.volumes().end()) return fail(Errc::kNotFound, "there is no such volume");
  if (request.client.empty() || volume->second.record.holder != request.client) {
    return fail(Errc::kDenied, "somebody else has the volume open, or nobody");
  }
  // Of the same opening the newest word counts.
  std::erase_if(running_->tenants, [&](const auto& each) {
    const bool is_older = each.second.volume == request.volume;
    if (is_older && each.second.trades) running_->auction.close(each.second.id);
    return is_older;
  });
  uint64_t ticket = 0;
  while (ticket == 0 || running_->tenants.contains(ticket)) ticket = env_.rng().next();
  Tenant& tenant = running_->tenants[ticket];
  tenant.volume = request.volume;
  tenant.client = request.client;
  tenant.terms = volume->second.terms;
  if (request.trades) open(tenant);
  admit_tenants();
  share::JoinReply reply{.market = running_->incarnation, .ticket = ticket, .places = {}};
  for (const auto& [id, spot] : running_->topology.spots) {
    reply.places.push_back({.uri = spot.uri,
                            .drive = drive_id(id),
                            .box = spot.box_name,
                            .port = spot.port,
                            .index = spot.index});
  }
  return reply;
}

Result<share::TradeReply> Market::trade(const share::TradeRequest& request) {
  if (!running_ || running_->incarnation != request.market) {
    return fail(Errc::kNotFound, "this is another market");
  }
  const auto found = running_->tenants.find(request.ticket);
  if (found == running_->tenants.end()) return fail(Errc::kNotFound, "the opening is over");
  const Tenant& tenant = found->second;
  if (request.requests.size() > share::kPlacesMax) {
    return fail(Errc::kInvalid, "more drives than a pool has");
  }
  if (!request.requests.empty() && !tenant.trades) {
    return fail(Errc::kInvalid, "it joined without trading");
  }
  const Time now = env_.now();
  share::TradeReply reply;
  for (const share::SliceRequest& each : request.requests) {
    Result<share::SliceGrant> grant = running_->auction.request(tenant.id, each, now);
    if (!grant) return fail(Errc::kInvalid, "it asks for what is no drive of the pool");
    const bool is_alone = running_->auction.active(each.drive) <= 1;
    // One that gives back what it has wants nothing.
    const bool wants = each.now > 0 || (each.given_back == 0 && each.next > 0);
    if (is_alone && wants && tenant.terms.cap == 0 && !grant->is_learning) {
      // Beside what it had, of which it may have given something back.
      const uint64_t has = each.epoch == grant->epoch ? std::min(each.has, kAlone << 16) : 0;
      grant->granted = std::max(grant->granted, has) + kAlone;
    }
    reply.grants.push_back(*grant);
  }
  for (const auto& [id, spot] : running_->topology.spots) {
    const view::DriveView* seen = running_->controller.drive(spot.box_name, spot.index);
    if (seen == nullptr) continue;
    // Who is alone there is in nobody's way.
    const bool is_in_the_way = seen->is_congested && running_->auction.active(drive_id(id)) > 1;
    reply.drives.push_back(
        {.drive = drive_id(id),
         .write_cost_x10 = seen->write_cost_x10,
         .congestion = is_in_the_way ? std::max(seen->read_delay, seen->write_delay) : Duration()});
  }
  return reply;
}

void Market::leave(const share::LeaveRequest& request) {
  if (!running_ || running_->incarnation != request.market) return;
  const auto found = running_->tenants.find(request.ticket);
  if (found == running_->tenants.end()) return;
  if (found->second.trades) running_->auction.close(found->second.id);
  running_->tenants.erase(found);
  admit_tenants();
}

DriveLoad Market::load(MegaVolId id) const {
  if (!running_) return {};
  const auto spot = running_->topology.spots.find(id);
  if (spot == running_->topology.spots.end()) return {};
  const view::DriveView* seen =
      running_->controller.drive(spot->second.box_name, spot->second.index);
  if (seen == nullptr) return {};
  return {.busy = seen->busy, .fragmentation = seen->fragmentation};
}

DriveLoad Market::load_for(MegaVolId id, std::string_view volume) const {
  DriveLoad seen = load(id);
  if (!running_) return seen;
  if (running_->auction.is_short(drive_id(id))) {
    seen.busy = 1000;
    return seen;
  }
  note_parts(env_.now());
  // What is estimated of a drive that nobody uses any more is of those who did.
  if (!running_->used.contains(id)) return {};
  const auto part = running_->parts.find({id, std::string(volume)});
  if (part != running_->parts.end()) {
    const int32_t others = 1000 - part->second;
    seen = {.busy = seen.busy * others / 1000, .fragmentation = seen.fragmentation * others / 1000};
  }
  return seen;
}

Attempt<void> Market::judge(const Pool& pool, const std::string& volume,
                            const share::Terms& terms) const {
  // Drives that are leaving promise nothing any more.
  Topology topology = topology_of(pool, options_);
  std::erase_if(topology.spots,
                [&](const auto& each) { return pool.members().at(each.first).info.is_leaving; });
  if (topology.spots.empty()) return {};
  Auction promised(1, env_.now());
  describe(promised, topology, options_);
  const std::vector<Auction::DrivePath> paths = all_paths(topology);
  for (const auto& [id, other] : pool.volumes()) {
    if (other.record.name == volume || other.record.is_leaving || other.terms.floor == 0) continue;
    // One that cannot be kept any more takes nothing from others.
    [[maybe_unused]] const Attempt<share::TenantId> opened =
        promised.open(other.record.name, {.floor = other.terms.floor}, paths);
  }
  return promised.check(volume, terms, paths);
}

}  // namespace cairn::arbiter
