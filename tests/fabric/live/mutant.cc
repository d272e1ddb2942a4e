// SPDX-License-Identifier: Apache-2.0
#include "fabric/live/mutant.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "nvme/format/fabrics_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/property_format.h"

namespace cairn::live_fuzz {

using nvme::Sqe;

namespace {

constexpr uint32_t kBlock = 4096;
constexpr uint32_t kNoiseSize = 1 << 20;
constexpr uint8_t kIoOpcodes[] = {0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0d, 0x0e, 0x11, 0x15, 0x19};
constexpr uint8_t kAdminOpcodes[] = {0x02, 0x06, 0x08, 0x09, 0x0a, 0x18};
constexpr uint8_t kEventRequest = 0x0c;
constexpr uint8_t kFabricsTypes[] = {0x00, 0x01, 0x04, 0x05, 0x06, 0x08};
constexpr uint32_t kConfiguration = 0x14;
constexpr uint32_t kPropertyOffsets[] = {0x00, 0x08, kConfiguration, 0x1c, 0x20};

template <class T, size_t N>
T one_of(Rng& rng, const T (&values)[N]) {
  return values[rng.below(N)];
}

}  // namespace

Mutants::Mutants(uint64_t seed, Queue queue, nvme::PduStyle style)
    : rng_(seed), queue_(queue), style_(style), noise_(kNoiseSize) {
  rng_.fill(noise_);
}

uint32_t Mutants::draw_dword() {
  switch (rng_.below(8)) {
    case 0:
      return static_cast<uint32_t>(rng_.next());
    case 1:
      return UINT32_MAX >> rng_.below(32);
    case 2:
      return 1u << rng_.below(32);
    default:
      return static_cast<uint32_t>(rng_.below(16));
  }
}

uint32_t Mutants::draw_nsid() {
  if (!seldom(8)) return 1;
  constexpr uint32_t kOthers[] = {0, 2, 3, 1024, 1025, nvme::kBroadcastNsid, 0xffff'fffe};
  return one_of(rng_, kOthers);
}

void Mutants::draw_opcode(Sqe& sqe) {
  if (seldom(4)) {
    sqe.opcode = static_cast<uint8_t>(rng_.below(256));
  } else if (queue_ == Queue::kIo) {
    sqe.opcode = one_of(rng_, kIoOpcodes);
  } else {
    sqe.opcode = seldom(200) ? kEventRequest : one_of(rng_, kAdminOpcodes);
  }
}

void Mutants::draw_fabrics(Sqe& sqe) {
  sqe.nsid = seldom(8) ? draw_dword() : one_of(rng_, kFabricsTypes);
  auto property = nvme::fabrics_cast<nvme::PropertyCommand>(sqe);
  const bool sets = property.type == nvme::FabricsType::kPropertySet;
  property.offset = seldom(8) ? draw_dword() : one_of(rng_, kPropertyOffsets);
  // Each reset of the controller costs a connection, so they are rare.
  if (sets && property.offset == kConfiguration && !seldom(100)) property.offset = 0x1c;
  sqe = nvme::to_sqe(property);
}

uint32_t Mutants::draw_data(Sqe& sqe) {
  const bool is_block = queue_ == Queue::kIo && (sqe.opcode & 3) != 0 && sqe.opcode < 0x09;
  uint32_t length = is_block ? nvme::BlockFields::decode(sqe).blocks * kBlock : kBlock;
  if (seldom(16)) length = draw_dword();
  if (seldom(4)) length = static_cast<uint32_t>(rng_.below(5)) * 16;
  const bool to_box = sqe.transfer() == nvme::Transfer::kHostToController;
  if ((to_box && length <= nvme::kAdminInCapsuleMax && !seldom(4)) || seldom(64)) {
    length = std::min(length, nvme::kAdminInCapsuleMax);
    sqe.sgl1 = nvme::SglDescriptor::in_capsule(length);
    if (seldom(32)) sqe.sgl1.address = draw_dword();
    if (seldom(32)) sqe.sgl1.length = draw_dword();
    return length;
  }
  sqe.sgl1 = nvme::SglDescriptor::transport(length);
  if (seldom(64)) sqe.sgl1.id = static_cast<nvme::SglId>(rng_.below(256));
  return 0;
}

void Mutants::append(std::vector<std::byte>& to, Bytes data) const {
  to.insert(to.end(), data.begin(), data.end());
  if (style_.data_digest && !data.empty()) {
    const auto digest = nvme::data_digest(std::span(&data, 1));
    to.insert(to.end(), digest.begin(), digest.end());
  }
}

void Mutants::add_command(std::vector<std::byte>& to) {
  Sqe sqe;
  draw_opcode(sqe);
  sqe.set_psdt(nvme::Psdt::kSgl);
  sqe.cid = seldom(500) ? static_cast<uint16_t>(rng_.next()) : ++cid_;
  sqe.nsid = draw_nsid();
  if (queue_ == Queue::kIo && !seldom(8)) {
    // Likely to be served: a few blocks of the namespace.
    sqe.set_cdw10_11(rng_.below(4200));
    sqe.cdw12 = static_cast<uint32_t>(seldom(64) ? rng_.below(300) : rng_.below(3)) |
                (seldom(4) ? draw_dword() & 0xffff'0000 : 0);
  } else {
    sqe.cdw10 = draw_dword();
    sqe.cdw11 = draw_dword();
    sqe.cdw12 = draw_dword();
  }
  if (seldom(4)) sqe.cdw13 = draw_dword();
  if (seldom(4)) sqe.cdw14 = draw_dword();
  if (seldom(4)) sqe.cdw15 = draw_dword();
  if (sqe.is_fabrics()) draw_fabrics(sqe);
  const uint32_t in_capsule = draw_data(sqe);
  if (seldom(64)) sqe.flags = static_cast<uint8_t>(rng_.below(256));
  if (seldom(64)) sqe.cdw2 = draw_dword();
  if (seldom(64)) sqe.mptr = rng_.next();

  const size_t at = to.size();
  to.resize(at + nvme::kPduPrefixMax);
  const MutableBytes prefix = MutableBytes(to).subspan(at);
  to.resize(at + nvme::build_capsule_cmd(prefix, style_, sqe, in_capsule));
  if (seldom(20'000)) to[at + rng_.below(72)] ^= static_cast<std::byte>(1 << rng_.below(8));
  append(to, Bytes(noise_).subspan(rng_.below(kNoiseSize / 2), in_capsule));
}

void Mutants::add_data(std::vector<std::byte>& to, const nvme::R2t& r2t) {
  nvme::DataPiece piece{
      .cid = r2t.cid, .ttag = r2t.ttag, .offset = r2t.offset, .length = r2t.length};
  piece.length = std::min<uint32_t>(piece.length, kNoiseSize / 2);
  if (seldom(20'000)) piece.ttag = static_cast<uint16_t>(rng_.next());
  if (seldom(20'000)) piece.offset += 4;
  const size_t at = to.size();
  to.resize(at + nvme::kPduPrefixMax);
  const MutableBytes prefix = MutableBytes(to).subspan(at);
  to.resize(at + nvme::build_h2c_data(prefix, style_, piece, true));
  append(to, Bytes(noise_).subspan(rng_.below(kNoiseSize / 2), piece.length));
}

}  // namespace cairn::live_fuzz
