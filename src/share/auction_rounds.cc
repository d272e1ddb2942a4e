// SPDX-License-Identifier: Apache-2.0
// How an epoch is shared out: floors, then rounds by weight.
#include <algorithm>

#include "share/auction.h"

namespace cairn::share {

namespace {

// A round gives each tenant a small part of the epoch, so that few epochs end within one.
constexpr uint64_t kRounds = 32;

// whole * part / all, of numbers that are as large as they can be.
uint64_t scaled(uint64_t whole, uint64_t part, uint64_t all) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(whole) * part / all);
}

}  // namespace

uint64_t Auction::quantum_of(const Drive& drive) const {
  uint64_t weights = 0;
  for (const Member* member : drive.members) {
    if (member->granted < member->limit) weights += member->tenant->terms.weight;
  }
  const auto left = static_cast<uint64_t>(std::max<int64_t>(drive.left, 0));
  return std::clamp(left / (std::max<uint64_t>(weights, 1) * kRounds), kQuantumMin, kQuantum);
}

uint64_t Auction::room_for(const Drive& drive, const Member& member, bool lent) const {
  int64_t room = INT64_MAX;
  const Port& port = ports_.at(member.port);
  for (size_t way = 0; way < 2; ++way) {
    if (member.permille[way] == 0) continue;
    const auto left = [&](const Pipe& pipe) {
      return pipe.left[way] + (lent ? of_epoch(pipe.rate) / 2 : 0);
    };
    const int64_t bytes = std::min(left(drive.pipe), left(port.pipe));
    room = std::min(room, bytes * 1000 / static_cast<int64_t>(member.permille[way]));
  }
  if (member.tenant->terms.cap != 0) {
    const int64_t bytes = std::max<int64_t>(member.tenant->cap_left, 0);
    room = std::min(room, static_cast<int64_t>(weighted_of(member, static_cast<uint64_t>(bytes))));
  }
  return static_cast<uint64_t>(std::max<int64_t>(room, 0));
}

void Auction::grant(Drive& drive, Member& member, uint64_t weighted) {
  member.granted += weighted;
  drive.left -= static_cast<int64_t>(weighted);
  Port& port = ports_.at(member.port);
  for (size_t way = 0; way < 2; ++way) {
    const auto bytes = static_cast<int64_t>(weighted * member.permille[way] / 1000);
    drive.pipe.left[way] -= bytes;
    port.pipe.left[way] -= bytes;
  }
  member.tenant->cap_left -= static_cast<int64_t>(bytes_of(member, weighted));
}

// A member's turn. Whether it can go on.
bool Auction::visit(Drive& drive, Member& member, uint64_t quantum) {
  if (member.granted >= member.limit) {
    // Whoever wants nothing saves nothing up.
    member.deficit = {};
    return false;
  }
  const uint64_t wanted = member.limit - member.granted;
  const auto on_drive = static_cast<uint64_t>(std::max<int64_t>(drive.left, 0));
  const uint64_t room = std::min(room_for(drive, member, false), on_drive);
  if (room < std::min(wanted, kQuantumMin)) {
    member.state = State::kDeferred;
    return false;
  }
  const uint64_t added = quantum * member.tenant->terms.weight;
  if (member.ahead > 0) {
    // Its floor was part of its share: the others come first until they have as much.
    member.ahead -= std::min(member.ahead, added);
    return true;
  }
  for (uint64_t& deficit : member.deficit) deficit = std::min(deficit + added, 2 * added);
  const uint64_t on_pipes =
      weighted_of(member, std::min(member.deficit[kNetPipe], member.deficit[kIoPipe]));
  const uint64_t slice = std::min({wanted, room, member.deficit[kDrivePart], on_pipes});
  if (slice < std::min(wanted, kQuantumMin)) return true;  // its next turn
  const uint64_t bytes = bytes_of(member, slice);
  member.deficit[kDrivePart] -= slice;
  member.deficit[kNetPipe] -= std::min(bytes, member.deficit[kNetPipe]);
  member.deficit[kIoPipe] -= std::min(bytes, member.deficit[kIoPipe]);
  grant(drive, member, slice);
  return true;
}

void Auction::share_out(const std::vector<Drive*>& drives) {
  std::vector<uint64_t> quanta;
  quanta.reserve(drives.size());
  for (const Drive* drive : drives) quanta.push_back(quantum_of(*drive));
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < drives.size(); ++i) {
      Drive& drive = *drives[i];
      const size_t count = drive.members.size();
      if (count == 0) continue;
      drive.first = (drive.first + 1) % count;
      for (size_t turn = 0; turn < count; ++turn) {
        Member& member = *drive.members[(drive.first + turn) % count];
        goes_on = visit(drive, member, quanta[i]) || goes_on;
      }
    }
  }
}

void Auction::serve_floors() {
  struct Need {
    Drive* drive;
    Member* member;
    uint64_t weighted;
  };
  std::vector<Need> needs;
  std::map<const Drive*, uint64_t> of_drives;
  for (auto& [id, tenant] : tenants_) {
    if (tenant.terms.floor == 0) continue;
    uint64_t wanted = 0;
    for (const auto& [drive, member] : tenant.members) wanted += bytes_of(member, member.limit);
    if (wanted == 0) continue;
    const auto floor = static_cast<uint64_t>(of_epoch(tenant.terms.floor));
    for (auto& [drive, member] : tenant.members) {
      const uint64_t its = bytes_of(member, member.limit);
      const uint64_t bytes = wanted <= floor ? its : scaled(floor, its, wanted);
      const uint64_t weighted = std::min(weighted_of(member, bytes), member.limit);
      needs.push_back({.drive = &drives_.at(drive), .member = &member, .weighted = weighted});
      of_drives[needs.back().drive] += weighted;
    }
  }
  for (const Need& need : needs) {
    const auto left = static_cast<uint64_t>(std::max<int64_t>(need.drive->left, 0));
    // A drive that does less than was promised does the same part of each promise.
    uint64_t& all = of_drives[need.drive];
    const uint64_t most = all <= left ? need.weighted : scaled(left, need.weighted, all);
    const uint64_t slice =
        std::min({need.weighted, most, room_for(*need.drive, *need.member, false)});
    all -= need.weighted;
    if (slice < need.weighted) ++missed_floors_;
    grant(*need.drive, *need.member, slice);
    need.member->ahead = slice;
  }
}

}  // namespace cairn::share
