// SPDX-License-Identifier: Apache-2.0
// MessageMaker: messages of a vfio-user client close to what makes sense, wrong in any of their
// fields, in their sizes, in their descriptors, in what they say of themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"
#include "env/sharing.h"
#include "testing/guest/client.h"

namespace cairn::fuzz {

class MessageMaker {
 public:
  // What a client has to give; outlives the maker.
  struct Belongings {
    const env::Descriptor* memory = nullptr;
    uint64_t memory_size = 0;
    const env::Descriptor* signal = nullptr;
  };
  struct Made {
    door::vfio_user::Header header;  // complete
    std::vector<std::byte> payload;
    std::vector<const env::Descriptor*> descriptors;
    bool is_valid = true;  // as a message, whatever it asks for: else the server hangs up

    bool is_answered() const { return is_valid && (header.flags & door::vfio_user::kNoReply) == 0; }
  };

  MessageMaker(Rng rng, const Belongings& belongings) : rng_(rng), belongings_(belongings) {}

  // `is_safe`: one after which the session goes on.
  Made make(uint16_t id, bool is_safe) {
    using door::vfio_user::Command;
    static constexpr Command kCommands[] = {
        Command::kDmaMap,        Command::kDmaMap,        Command::kDmaUnmap,
        Command::kGetInfo,       Command::kGetIrqInfo,    Command::kGetRegionInfo,
        Command::kRegionRead,    Command::kRegionRead,    Command::kGetRegionIoFds,
        Command::kRegionWrite,   Command::kRegionWrite,   Command::kRegionWrite,
        Command::kSetIrqs,       Command::kSetIrqs,       Command::kRegionWriteMulti,
        Command::kFeature,       Command::kFeature,       Command::kDirtyPages,
        Command::kMigrationRead, Command::kMigrationWrite};
    Command command = pick(kCommands);
    if (one_in(64)) command = Command::kReset;
    if (one_in(64)) command = static_cast<Command>(rng_.below(32));
    made_ = {};
    fill_payload(command);
    bend_payload();
    // Memory where a signal is wanted, one too many, or some with a command that takes none.
    if (one_in(32)) made_.descriptors.assign(rng_.below(4), any_descriptor());
    made_.header = {
        .id = id,
        .command = static_cast<uint16_t>(command),
        .size = static_cast<uint32_t>(sizeof(door::vfio_user::Header) + made_.payload.size()),
        .flags = one_in(16) ? door::vfio_user::kNoReply : door::vfio_user::kTypeCommand,
        .error = one_in(16) ? small() : 0u};
    if (one_in(32)) made_.header.flags = made_.header.flags | door::vfio_user::kError;
    if (!is_safe && one_in(64)) spoil();
    return std::move(made_);
  }

 private:
  template <class... Layouts>
  void put(const Layouts&... layouts) {
    made_.payload = door::vfio_user::payload_of(layouts...);
  }

  void fill_payload(door::vfio_user::Command command) {
    using door::vfio_user::Command;
    switch (command) {
      case Command::kDmaMap:
        return put_map();
      case Command::kDmaUnmap:
        return put_unmap();
      case Command::kGetInfo:
        return put(door::vfio_user::DeviceInfo{
            .argsz = argsz(16), .flags = bits(8), .regions = {}, .irqs = {}});
      case Command::kGetRegionInfo:
        return put(door::vfio_user::RegionInfo{.argsz = argsz(one_in(2) ? 32 : 64),
                                               .flags = {},
                                               .index = static_cast<uint32_t>(rng_.below(11)),
                                               .capability_offset = {},
                                               .size = {},
                                               .offset = {}});
      case Command::kGetRegionIoFds:
        return put(door::vfio_user::RegionIoFds{.argsz = argsz(16),
                                                .flags = bits(16),
                                                .index = static_cast<uint32_t>(rng_.below(11)),
                                                .count = one_in(4) ? small() : 0u});
      case Command::kGetIrqInfo:
        return put(door::vfio_user::IrqInfo{.argsz = argsz(16),
                                            .flags = {},
                                            .index = static_cast<uint32_t>(rng_.below(7)),
                                            .count = {}});
      case Command::kSetIrqs:
        return put_irqs();
      case Command::kRegionRead:
        return put(access(one_in(64) ? any_size() : rng_.below(one_in(8) ? 300 : 9)));
      case Command::kRegionWrite:
        return put_write();
      case Command::kRegionWriteMulti:
        return put_writes();
      case Command::kDirtyPages:
        return put_dirty();
      case Command::kFeature:
        return put_feature();
      case Command::kMigrationRead:
      case Command::kMigrationWrite:
        return put_state(command);
      case Command::kReset:
        return;
      default:
        made_.payload.resize(rng_.below(64));
        rng_.fill(made_.payload);
    }
  }

  // ---- what payloads are made of ----

  bool one_in(uint64_t count) { return rng_.below(count) == 0; }
  template <class T, size_t count>
  T pick(const T (&from)[count]) {
    return from[rng_.below(count)];
  }
  uint32_t small() { return static_cast<uint32_t>(rng_.below(9)); }
  // Of `count` flags at most one, rarely more.
  uint32_t bits(uint32_t count) {
    if (one_in(16)) return static_cast<uint32_t>(rng_.next());
    return one_in(2) ? 0 : uint32_t{1} << rng_.below(count);
  }
  uint32_t argsz(uint32_t right) {
    return one_in(16) ? static_cast<uint32_t>(rng_.next() >> rng_.below(64)) : right;
  }
  // Of any size, small ones more often.
  uint64_t any_size() { return rng_.next() >> rng_.below(64); }
  uint64_t pages() const { return belongings_.memory_size / door::vfio_user::kPageSize; }
  uint64_t page_aligned(uint64_t bound) { return rng_.below(bound) * door::vfio_user::kPageSize; }
  uint64_t address() { return one_in(16) ? any_size() : page_aligned(2 * pages()); }
  uint64_t length() { return one_in(16) ? any_size() : page_aligned(pages() / 2) + 4096; }
  const env::Descriptor* any_descriptor() {
    return one_in(2) ? belongings_.memory : belongings_.signal;
  }

  door::vfio_user::RegionAccess access(uint64_t count) {
    static constexpr uint32_t kPlaces[] = {door::vfio_user::kBar0, door::vfio_user::kBar0,
                                           door::vfio_user::kBar4, door::vfio_user::kConfig};
    const uint32_t region = one_in(32) ? static_cast<uint32_t>(rng_.below(12)) : pick(kPlaces);
    return {.offset = offset_in(region), .region = region, .count = static_cast<uint32_t>(count)};
  }
  uint64_t offset_in(uint32_t region) {
    if (one_in(32)) return any_size();
    if (region == door::vfio_user::kBar0) {
      static constexpr uint64_t kRegisters[] = {0,    0x8,  0xc,  0x10, 0x14,
                                                0x1c, 0x20, 0x24, 0x28, 0x30};
      if (one_in(2)) return door::vfio_user::kDoorbellsAt + rng_.below(12) * 4;
      if (one_in(2)) return pick(kRegisters);
    }
    return rng_.below(one_in(4) ? door::vfio_user::kBar0Size : 256) & ~(one_in(4) ? 0u : 3u);
  }

  void put_map() {
    put(door::vfio_user::DmaMap{
        .argsz = argsz(32),
        .flags = one_in(16) ? bits(4) : 1 + static_cast<uint32_t>(rng_.below(3)),
        .offset = one_in(16) ? any_size() : page_aligned(pages()),
        .address = address(),
        .size = length()});
    if (!one_in(8)) made_.descriptors.push_back(belongings_.memory);
  }
  void put_unmap() {
    const door::vfio_user::DmaUnmap unmap{
        .argsz = argsz(24), .flags = bits(2), .address = address(), .size = length()};
    if ((unmap.flags & door::vfio_user::kUnmapAll) != 0 && !one_in(4)) {
      return put(door::vfio_user::DmaUnmap{
          .argsz = argsz(24), .flags = unmap.flags, .address = {}, .size = {}});
    }
    put(unmap, bitmap());
  }
  door::vfio_user::DirtyBitmap bitmap() {
    return {.page_size = one_in(8) ? any_size() : door::vfio_user::kPageSize,
            .size = one_in(8) ? any_size() : 8 * rng_.below(4),
            .data = {}};
  }
  void put_irqs() {
    static constexpr uint32_t kIndexes[] = {door::vfio_user::kIntx, door::vfio_user::kMsix,
                                            door::vfio_user::kMsix, door::vfio_user::kErr,
                                            door::vfio_user::kReq};
    const uint32_t data = uint32_t{1} << rng_.below(3);
    const uint32_t action = uint32_t{8} << rng_.below(3);
    const auto count = static_cast<uint32_t>(rng_.below(one_in(8) ? 130 : 5));
    put(door::vfio_user::IrqSet{.argsz = argsz(20),
                                .flags = one_in(16) ? bits(8) : data | action,
                                .index = one_in(16) ? small() : pick(kIndexes),
                                .start = one_in(16) ? static_cast<uint32_t>(any_size())
                                                    : small() * small() / 4,
                                .count = one_in(16) ? static_cast<uint32_t>(any_size()) : count},
        door::vfio_user::Le64(rng_.next() & rng_.next()));
    if (data != door::vfio_user::kIrqDataEventfd) return;
    const size_t descriptors = std::min<size_t>(count, door::vfio_user::kDescriptorsMax);
    made_.descriptors.assign(one_in(8) ? rng_.below(6) : descriptors, belongings_.signal);
  }
  void put_write() {
    std::array<std::byte, 64> data;
    static constexpr size_t kCounts[] = {4, 4, 8, 2, 1, 0, 16, 64};
    const size_t count = pick(kCounts);
    rng_.fill(data);
    // Values that mean something to doorbells and registers.
    if (!one_in(4)) store(MutableBytes(data), rng_.below(40));
    if (one_in(16)) store(MutableBytes(data), uint64_t{0x0046'0001});
    put(access(one_in(32) ? any_size() : count));
    made_.payload.insert(made_.payload.end(), data.begin(), data.begin() + count);
  }
  void put_writes() {
    const uint64_t count = rng_.below(6);
    put(door::vfio_user::Le64(one_in(16) ? any_size() : count));
    for (uint64_t i = 0; i < count; ++i) {
      const door::vfio_user::RegionAccess where = access(one_in(16) ? any_size() : rng_.below(9));
      door::vfio_user::RegionWriteOne one{
          .offset = where.offset, .region = where.region, .count = where.count};
      store(MutableBytes(one.data), rng_.below(40));
      const Bytes bytes = nvme::bytes_of(one);
      made_.payload.insert(made_.payload.end(), bytes.begin(), bytes.end());
    }
  }
  void put_dirty() {
    put(door::vfio_user::DirtyPages{.argsz = argsz(one_in(2) ? 8 : 256), .flags = bits(3)},
        door::vfio_user::DirtyRange{.address = address(), .size = length(), .bitmap = bitmap()});
  }
  void put_feature() {
    using door::vfio_user::FeatureId;
    static constexpr FeatureId kIds[] = {FeatureId::kMigration,      FeatureId::kMigrationState,
                                         FeatureId::kMigrationState, FeatureId::kLoggingStart,
                                         FeatureId::kLoggingStop,    FeatureId::kLoggingReport};
    static constexpr uint32_t kWays[] = {door::vfio_user::kFeatureGet, door::vfio_user::kFeatureSet,
                                         door::vfio_user::kFeatureSet,
                                         door::vfio_user::kFeatureProbe};
    const FeatureId id = one_in(32) ? static_cast<FeatureId>(rng_.below(12)) : pick(kIds);
    const uint32_t ways = one_in(16) ? bits(32) : pick(kWays);
    const door::vfio_user::Feature header{.argsz = argsz(one_in(4) ? 8 : 256),
                                          .flags = static_cast<uint32_t>(id) | ways};
    switch (id) {
      case FeatureId::kMigrationState:
        return put(header, door::vfio_user::FeatureState{
                               .state = static_cast<uint32_t>(rng_.below(6)), .data_fd = {}});
      case FeatureId::kLoggingStart:
        return put(header,
                   door::vfio_user::FeatureLoggingStart{
                       .page_size = door::vfio_user::kPageSize,
                       .ranges = one_in(4) ? static_cast<uint32_t>(any_size()) : small() / 4,
                       .reserved = {}},
                   door::vfio_user::LoggingRange{.address = address(), .length = length()},
                   door::vfio_user::LoggingRange{.address = address(), .length = length()});
      case FeatureId::kLoggingReport:
        return put(header, door::vfio_user::FeatureLoggingReport{
                               .address = address(),
                               .length = length(),
                               .page_size = one_in(8) ? any_size() : door::vfio_user::kPageSize});
      default:
        return put(header, door::vfio_user::Le64(rng_.next()));
    }
  }
  void put_state(door::vfio_user::Command command) {
    const auto size = static_cast<uint32_t>(one_in(8) ? any_size() : rng_.below(128));
    const size_t sent =
        command == door::vfio_user::Command::kMigrationWrite ? std::min<size_t>(size, 256) : 0;
    put(door::vfio_user::MigrationData{.argsz = argsz(8 + size), .size = size});
    made_.payload.resize(made_.payload.size() + sent);
    rng_.fill(MutableBytes(made_.payload).last(sent));
  }

  // ---- what is wrong with them ----

  void bend_payload() {
    std::vector<std::byte>& payload = made_.payload;
    if (one_in(32)) payload.resize(rng_.below(payload.size() + 1));
    if (one_in(64)) payload.resize(payload.size() + rng_.below(40));
    if (one_in(32) && !payload.empty()) {
      payload[rng_.below(payload.size())] = std::byte{static_cast<uint8_t>(rng_.next())};
    }
  }
  void spoil() {
    static constexpr uint32_t kSizes[] = {0, 1, 15, door::vfio_user::kMessageMax + 1, UINT32_MAX};
    made_.is_valid = false;
    switch (rng_.below(3)) {
      case 0:
        made_.header.size = pick(kSizes);
        break;
      case 1:
        made_.header.flags = one_in(2) ? door::vfio_user::kTypeReply : 2 + small();
        break;
      default:
        made_.descriptors.assign(door::vfio_user::kDescriptorsMax + 1, any_descriptor());
    }
  }

  Rng rng_;
  const Belongings belongings_;
  Made made_;
};

}  // namespace cairn::fuzz
