// SPDX-License-Identifier: Apache-2.0
// ChainMaker: requests of a virtio disk close to what makes sense, in chains whose segments lie in
// the guest's memory, at its edges, in its rings, or nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "door/vhost_user/chain.h"
#include "door/vhost_user/virtio_format.h"

namespace cairn::fuzz {

class ChainMaker {
  using BlkType = door::vhost_user::BlkType;

 public:
  struct Places {
    MutableBytes data;     // memory of the guest, where headers are made
    uint64_t address = 0;  // of `data`
    uint64_t rings = 0;    // other memory, from 0 on: its size
  };
  ChainMaker(Rng rng, const Places& places) : rng_(rng), places_(places) {}

  std::vector<door::vhost_user::Segment> chain() {
    const uint64_t header_at = rng_.below(places_.data.size() / 64) * 64;
    const uint32_t type = one_in(16) ? static_cast<uint32_t>(rng_.next()) : pick_type();
    door::vhost_user::BlkHeader header{
        .type = type,
        .reserved = 0,
        .sector = one_in(16) ? rng_.next() : rng_.below(one_in(8) ? 160 : 64)};
    store(places_.data.subspan(header_at), header);
    // Ranges of a discard stand behind it, in case it is one.
    if (header_at + 64 <= places_.data.size()) {
      store(places_.data.subspan(header_at + 16), rng_.below(140));
      store(places_.data.subspan(header_at + 24), static_cast<uint32_t>(rng_.below(64)));
      store(places_.data.subspan(header_at + 28), static_cast<uint32_t>(one_in(4)));
    }
    std::vector<door::vhost_user::Segment> segments;
    segments.push_back({.address = one_in(32) ? address() : places_.address + header_at,
                        .length = one_in(16) ? length() : 16,
                        .is_writable = one_in(32)});
    const auto kind = static_cast<BlkType>(type);
    const bool device_writes = kind == BlkType::kIn || kind == BlkType::kGetId;
    const bool has_ranges = kind == BlkType::kDiscard || kind == BlkType::kWriteZeroes;
    if (has_ranges && !one_in(8)) {
      segments.push_back(
          {.address = places_.address + header_at + 16, .length = 16, .is_writable = false});
    } else {
      for (uint64_t i = rng_.below(5); i > 0; --i) {
        segments.push_back({.address = address(),
                            .length = length(),
                            .is_writable = one_in(32) ? !device_writes : device_writes});
      }
    }
    if (!one_in(32)) {
      segments.push_back({.address = one_in(16) ? address() : inside(),
                          .length = one_in(16) ? length() : 1,
                          .is_writable = !one_in(32)});
    }
    return segments;
  }

 private:
  bool one_in(uint64_t count) { return rng_.below(count) == 0; }
  uint32_t pick_type() {
    static constexpr BlkType kTypes[] = {BlkType::kIn,      BlkType::kIn,         BlkType::kOut,
                                         BlkType::kOut,     BlkType::kFlush,      BlkType::kGetId,
                                         BlkType::kDiscard, BlkType::kWriteZeroes};
    return static_cast<uint32_t>(kTypes[rng_.below(std::size(kTypes))]);
  }
  uint32_t length() {
    static constexpr uint32_t kLengths[] = {512, 512, 1024, 4096, 512, 0, 1, 20, 511, 65536};
    return one_in(32) ? static_cast<uint32_t>(rng_.next()) : kLengths[rng_.below(10)];
  }
  uint64_t inside() { return places_.address + rng_.below(places_.data.size()); }
  uint64_t address() {
    switch (rng_.below(16)) {
      case 0:
        return rng_.next();
      case 1:
        return places_.address + places_.data.size() - rng_.below(1024);
      case 2:
        return places_.address - rng_.below(1024);
      case 3:
        return rng_.below(places_.rings);
      default:
        return places_.address + rng_.below(places_.data.size() / 512) * 512;
    }
  }

  Rng rng_;
  Places places_;
};

}  // namespace cairn::fuzz
