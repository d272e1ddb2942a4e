// SPDX-License-Identifier: Apache-2.0
// CommandMaker: NVMe commands close to what makes sense, wrong in any of their fields, with data
// anywhere: in the guest's memory, at its edges, across them, nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/rng.h"
#include "nvme/format/command_format.h"

namespace cairn::fuzz {

class CommandMaker {
 public:
  // Where data may be.
  struct Places {
    MutableBytes bytes;      // a part of the guest's memory, of whole pages, where lists are made
    uint64_t address = 0;    // of `bytes`
    uint64_t first = 0;      // the guest's memory begins and ends here, but for bytes in between
    uint64_t end = 0;        // that are not there
    bool is_honest = false;  // commands and lists name nothing but `bytes`
  };

  CommandMaker(Rng rng, const Places& places) : rng_(rng), places_(places) {}

  nvme::Sqe io(uint16_t cid) {
    if (second_) {
      nvme::Sqe sqe = *std::exchange(second_, std::nullopt);
      sqe.cid = cid;
      return sqe;
    }
    static constexpr nvme::IoOpcode kOpcodes[] = {nvme::IoOpcode::kRead,
                                                  nvme::IoOpcode::kRead,
                                                  nvme::IoOpcode::kWrite,
                                                  nvme::IoOpcode::kWrite,
                                                  nvme::IoOpcode::kFlush,
                                                  nvme::IoOpcode::kCompare,
                                                  nvme::IoOpcode::kWriteZeroes,
                                                  nvme::IoOpcode::kDatasetManagement,
                                                  nvme::IoOpcode::kVerify,
                                                  nvme::IoOpcode::kWriteUncorrectable,
                                                  nvme::IoOpcode::kReservationRegister,
                                                  nvme::IoOpcode::kReservationReport,
                                                  nvme::IoOpcode::kReservationAcquire,
                                                  nvme::IoOpcode::kReservationRelease,
                                                  nvme::IoOpcode::kCopy};
    nvme::Sqe sqe = begin(static_cast<uint8_t>(pick(kOpcodes)), cid);
    sqe.nsid = static_cast<uint32_t>(one_in(16) ? rng_.next() : rng_.between(1, 2));
    if (one_in(16)) sqe.nsid = nvme::kBroadcastNsid;
    sqe.set_cdw10_11(one_in(16) ? rng_.next() : rng_.below(one_in(8) ? 600 : 64));
    sqe.cdw12 = static_cast<uint32_t>(one_in(16) ? rng_.next() : rng_.below(one_in(4) ? 64 : 4));
    if (one_in(32)) sqe.set_fuse(static_cast<nvme::Fuse>(rng_.below(4)));
    if (one_in(32)) make_pair(sqe);
    if (sqe.io_opcode() == nvme::IoOpcode::kDatasetManagement) {
      sqe.cdw10 = static_cast<uint32_t>(one_in(8) ? rng_.next() : rng_.below(4));
      sqe.cdw11 = uint32_t{4};
    }
    if (nvme::is_reservation(sqe.io_opcode())) {
      sqe.cdw10 = static_cast<uint32_t>(rng_.below(1 << 10));
    }
    return sqe;
  }

  nvme::Sqe admin(uint16_t cid) {
    using enum nvme::AdminOpcode;
    static constexpr nvme::AdminOpcode kOpcodes[] = {kIdentify,
                                                     kGetLogPage,
                                                     kGetFeatures,
                                                     kSetFeatures,
                                                     kAbort,
                                                     kAsynchronousEventRequest,
                                                     kCreateCompletionQueue,
                                                     kCreateSubmissionQueue,
                                                     kDeleteSubmissionQueue,
                                                     kDeleteCompletionQueue,
                                                     kDoorbellBufferConfig,
                                                     kKeepAlive,
                                                     kFormatNvm,
                                                     kFabrics};
    const bool is_odd = one_in(16);
    nvme::Sqe sqe = begin(
        is_odd ? static_cast<uint8_t>(rng_.next()) : static_cast<uint8_t>(pick(kOpcodes)), cid);
    sqe.flags = one_in(32) ? sqe.flags : 0;
    sqe.nsid = one_in(8) ? nvme::kBroadcastNsid : static_cast<uint32_t>(rng_.below(4));
    if (one_in(4)) return sqe;
    const auto number = [&](uint64_t bound) { return static_cast<uint32_t>(rng_.below(bound)); };
    sqe.cdw11 = sqe.cdw12 = sqe.cdw13 = uint32_t{0};
    switch (sqe.admin_opcode()) {
      case kIdentify:
        sqe.cdw10 = number(one_in(4) ? 0x20 : 9);
        break;
      case kGetLogPage: {
        static constexpr uint32_t kPages[] = {0, 1, 2, 3, 4, 5, 0xc, 0xd, 0x70, 0x80};
        sqe.cdw10 = pick(kPages) | number(2) << 15 | number(one_in(4) ? 2048 : 128) << 16;
        sqe.cdw12 = one_in(4) ? number(256) : 0;
        break;
      }
      case kGetFeatures:
      case kSetFeatures: {
        static constexpr uint32_t kFeatures[] = {1,   2,   4,   5,    6,    7,    8,    9,    0xa,
                                                 0xb, 0xe, 0xf, 0x10, 0x16, 0x78, 0x81, 0x82, 0x83};
        sqe.cdw10 = pick(kFeatures) | (one_in(4) ? number(8) << 8 : 0);
        sqe.cdw11 = one_in(4) ? number(UINT32_MAX) : number(6);
        break;
      }
      case kAbort:
        sqe.cdw10 = number(3) | number(130) << 16;
        break;
      case kCreateCompletionQueue:
      case kCreateSubmissionQueue:
        sqe.cdw10 = number(7) | number(one_in(4) ? 0x10000 : 64) << 16;
        sqe.cdw11 = (one_in(8) ? number(8) : 3) | number(7) << 16;
        if (!one_in(8)) sqe.sgl1.address = sqe.sgl1.address & ~uint64_t{4095};
        break;
      case kDeleteSubmissionQueue:
      case kDeleteCompletionQueue:
        sqe.cdw10 = number(7);
        break;
      case kDoorbellBufferConfig:
        sqe.sgl1.address = address() & ~uint64_t{4095};
        store(nvme::mutable_bytes_of(sqe.sgl1).subspan(8), address() & ~uint64_t{4095});
        break;
      default:
        break;
    }
    return sqe;
  }

  // An address in the guest's memory, at an edge of it, or anywhere.
  uint64_t address() {
    if (places_.is_honest) return inside();
    switch (rng_.below(8)) {
      case 0:
        return rng_.next();
      case 1:
        return places_.first - 8192 + rng_.below(4) * 4096;
      case 2:
        return places_.end - 4 * 4096 + rng_.below(8) * 4096 + (one_in(4) ? rng_.below(4096) : 0);
      case 3:
        return places_.first + (rng_.below(places_.end - places_.first) & ~uint64_t{4095});
      default:
        return inside();
    }
  }

 private:
  // A compare, and the write that it is fused with.
  void make_pair(nvme::Sqe& first) {
    first.opcode = static_cast<uint8_t>(nvme::IoOpcode::kCompare);
    first.set_fuse(nvme::Fuse::kFirst);
    first.cdw12 = static_cast<uint32_t>(rng_.below(3));
    second_ = first;
    second_->opcode = static_cast<uint8_t>(nvme::IoOpcode::kWrite);
    second_->set_fuse(nvme::Fuse::kSecond);
    if (one_in(8)) second_->cdw10 = second_->cdw10 + 1;
  }

  bool one_in(uint64_t count) { return rng_.below(count) == 0; }
  template <class T, size_t count>
  T pick(const T (&from)[count]) {
    return from[rng_.below(count)];
  }
  uint64_t pages() const { return places_.bytes.size() / 4096; }
  uint64_t inside() {
    const uint64_t page = places_.address + rng_.below(pages()) * 4096;
    return one_in(4) ? page + (rng_.below(4096) & ~uint64_t{3}) : page;
  }

  nvme::Sqe begin(uint8_t opcode, uint16_t cid) {
    nvme::Sqe sqe;
    rng_.fill(nvme::mutable_bytes_of(sqe));
    sqe.opcode = opcode;
    sqe.cid = cid;
    sqe.flags = 0;
    sqe.cdw14 = uint32_t{0};
    sqe.cdw15 = uint32_t{0};
    if (one_in(4)) {
      point_by_sgl(sqe);
    } else {
      point_by_prp(sqe);
    }
    return sqe;
  }

  void point_by_prp(nvme::Sqe& sqe) {
    sqe.sgl1.address = address();
    const uint64_t second = one_in(2) ? make_list() : address();
    store(nvme::mutable_bytes_of(sqe.sgl1).subspan(8), one_in(8) ? uint64_t{0} : second);
  }
  void point_by_sgl(nvme::Sqe& sqe) {
    sqe.set_psdt(one_in(16) ? static_cast<nvme::Psdt>(rng_.below(4)) : nvme::Psdt::kSgl);
    sqe.sgl1 = one_in(2) ? block() : make_segment();
  }
  nvme::SglDescriptor block() {
    static constexpr uint32_t kLengths[] = {512, 1024, 4096, 8192, 0, 4, 65536, 1 << 20};
    nvme::SglDescriptor descriptor = nvme::SglDescriptor::data(address(), pick(kLengths));
    if (one_in(16)) descriptor.id = nvme::SglId::kBitBucket;
    if (one_in(16)) descriptor.id = static_cast<nvme::SglId>(rng_.next());
    return descriptor;
  }

  // A page of the places with entries, which may be lists of their own; its address.
  uint64_t make_list() {
    const uint64_t page = rng_.below(pages()) * 4096;
    const uint64_t offset = one_in(4) ? rng_.below(512) * 8 : 0;
    for (uint64_t at = offset; at < 4096 && at < offset + 256; at += 8) {
      const uint64_t entry = address() & (one_in(16) ? ~uint64_t{0} : ~uint64_t{4095});
      store(places_.bytes.subspan(page + at), entry);
    }
    return places_.address + page + offset + (one_in(32) ? rng_.below(8) : 0);
  }
  nvme::SglDescriptor make_segment() {
    const uint64_t page = rng_.below(pages()) * 4096;
    const uint64_t count = rng_.between(1, 16);
    for (uint64_t i = 0; i < count; ++i) {
      nvme::SglDescriptor entry = block();
      if (i + 1 == count && one_in(4)) {
        entry = {.address = address(), .length = 64u, .id = nvme::SglId::kLastSegment};
      }
      store(places_.bytes.subspan(page + i * sizeof entry), entry);
    }
    return {.address = places_.address + page,
            .length = static_cast<uint32_t>(count * 16 + (one_in(16) ? 1 : 0)),
            .id = one_in(4) ? nvme::SglId::kSegment : nvme::SglId::kLastSegment};
  }

  Rng rng_;
  Places places_;
  std::optional<nvme::Sqe> second_;
};

}  // namespace cairn::fuzz
