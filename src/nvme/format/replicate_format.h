// SPDX-License-Identifier: Apache-2.0
// Replicated Write: ours, where vendors may have their own commands. What a Write brings goes to
// one or two more namespaces of the controller as well: one transfer for all replicas of a block.
//
//   NSID, CDW10 to CDW12   as those of Write; CDW12 also bits 19:16: units have 2 to this many
//                          blocks
//   CDW2                   15:0 the second namespace, 31:16 the third, 0: there is none
//   CDW3, CDW13            where in these: the unit. The place in it is the first one's in its unit
//   CDW14, CDW15           incarnation_check() of these, as the host knows them
//
// All is refused, and nothing written, when the blocks are not in one unit, or when a namespace is
// another one by now. After another failure of any of them nothing is known of all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/ids.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"
#include "nvme/format/io_format.h"

namespace cairn::nvme {

// In bytes 3080 to 3087 of Identify Controller: there is such a command.
inline constexpr std::array<char, 8> kReplicationMagic = {'C', 'A', 'I', 'R', 'N', 'R', 'W', '1'};

inline constexpr size_t kReplicasMax = 2;  // besides the namespace that NSID names
inline constexpr uint32_t kUnitShiftMax = 15;

// Tells a namespace that was another one before, by what Identify says of its incarnation.
inline uint32_t incarnation_check(uint64_t medium, uint64_t opening) {
  std::array<std::byte, 16> both;
  store(MutableBytes(both), medium);
  store(MutableBytes(both).subspan(8), opening);
  return crc32c(both);
}

struct ReplicateFields {
  struct Replica {
    uint16_t nsid = 0;  // 0: there is none
    uint32_t unit = 0;
    uint32_t check = 0;
    friend constexpr bool operator==(const Replica&, const Replica&) = default;
  };
  BlockFields blocks;  // without those of CDW13
  uint32_t unit_shift = 0;
  std::array<Replica, kReplicasMax> replicas;

  static constexpr ReplicateFields decode(const Sqe& sqe) {
    Sqe plain = sqe;
    plain.cdw13 = 0;
    return {.blocks = BlockFields::decode(plain),
            .unit_shift = bits<19, 16>(sqe.cdw12),
            .replicas = {{{.nsid = static_cast<uint16_t>(bits<15, 0>(sqe.cdw2)),
                           .unit = sqe.cdw3,
                           .check = sqe.cdw14},
                          {.nsid = static_cast<uint16_t>(bits<31, 16>(sqe.cdw2)),
                           .unit = sqe.cdw13,
                           .check = sqe.cdw15}}}};
  }
  constexpr void encode(Sqe& sqe) const {
    blocks.encode(sqe);
    sqe.cdw12 = sqe.cdw12 | to_bits32<19, 16>(unit_shift);
    sqe.cdw2 = to_bits32<15, 0>(replicas[0].nsid) | to_bits32<31, 16>(replicas[1].nsid);
    sqe.cdw3 = replicas[0].unit;
    sqe.cdw13 = replicas[1].unit;
    sqe.cdw14 = replicas[0].check;
    sqe.cdw15 = replicas[1].check;
  }
  // Whether all blocks are in one unit.
  constexpr bool is_in_one_unit() const {
    return place_in_unit() + blocks.blocks <= uint64_t{1} << unit_shift;
  }
  constexpr Lba start_in(const Replica& replica) const {
    return Lba((uint64_t{replica.unit} << unit_shift) + place_in_unit());
  }
  friend constexpr bool operator==(const ReplicateFields&, const ReplicateFields&) = default;

 private:
  constexpr uint64_t place_in_unit() const {
    return blocks.start.value() & ((uint64_t{1} << unit_shift) - 1);
  }
};

// Whether the command, of an I/O queue, does something with the namespace.
constexpr bool concerns_namespace(const Sqe& sqe, uint32_t nsid) {
  if (sqe.nsid == nsid) return true;
  if (sqe.io_opcode() != IoOpcode::kReplicatedWrite) return false;
  for (const ReplicateFields::Replica& each : ReplicateFields::decode(sqe).replicas) {
    if (each.nsid != 0 && each.nsid == nsid) return true;
  }
  return false;
}

}  // namespace cairn::nvme
