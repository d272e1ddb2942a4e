// SPDX-License-Identifier: Apache-2.0
#include "nvme/reservation/reservation_state_format.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/rng.h"

namespace cairn::nvme {
namespace {

constexpr std::array<uint8_t, 16> kNguid = {0xaa, 1, 2, 3};

Reservations::Saved sample() {
  return {.persists = true,
          .generation = 7,
          .type = ReservationType::kExclusiveAccess,
          .holder = {2},
          .registrations = {{.host = {1}, .key = 0x10}, {.host = {2}, .key = 0x20}}};
}

// With the checksum made right again.
std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
  const Le32 checksum = crc32c(Bytes(bytes).subspan(20));
  store(MutableBytes(bytes).subspan(16), checksum);
  return bytes;
}

TEST(ReservationState, RoundTrip) {
  const std::vector<std::byte> bytes = encode_reservations(sample(), kNguid);
  const Result<Reservations::Saved> back = decode_reservations(bytes, kNguid);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, sample());
  const Result<Reservations::Saved> none =
      decode_reservations(encode_reservations({}, kNguid), kNguid);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, Reservations::Saved{});
}

TEST(ReservationState, LayoutIsGolden) {
  const std::vector<std::byte> bytes = encode_reservations(sample(), kNguid);
  ASSERT_EQ(bytes.size(), 64u + 2 * 24);
  EXPECT_EQ(as_text(Bytes(bytes).first(8)), "cairnrsv");
  EXPECT_EQ(load<uint32_t>(Bytes(bytes).subspan(8)), 1u);
  EXPECT_EQ(load<uint32_t>(Bytes(bytes).subspan(12)), 112u);
  EXPECT_EQ(load<uint32_t>(Bytes(bytes).subspan(20)), 7u);
  EXPECT_EQ(load<uint32_t>(Bytes(bytes).subspan(24)), 2u);
  EXPECT_EQ(bytes[28], std::byte{2});
  EXPECT_EQ(bytes[29], std::byte{1});
  EXPECT_EQ(bytes[32], std::byte{2});
  EXPECT_EQ(bytes[48], std::byte{0xaa});
  EXPECT_EQ(bytes[64], std::byte{1});
  EXPECT_EQ(bytes[80], std::byte{0x10});
  EXPECT_EQ(bytes[88], std::byte{2});
}

TEST(ReservationState, EveryDamagedByteIsNoticed) {
  const std::vector<std::byte> good = encode_reservations(sample(), kNguid);
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bytes = good;
    bytes[i] ^= std::byte{0x40};
    EXPECT_FALSE(decode_reservations(bytes, kNguid)) << i;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_reservations(Bytes(good).first(size), kNguid));
  }
}

TEST(ReservationState, SaysWhatIsWrong) {
  std::vector<std::byte> bytes = encode_reservations(sample(), kNguid);
  EXPECT_EQ(decode_reservations(bytes, {}).error(), Errc::kMismatch);
  bytes[8] = std::byte{2};
  EXPECT_EQ(decode_reservations(sealed(bytes), kNguid).error(), Errc::kUnsupported);
}

TEST(ReservationState, ContradictionsAreCorrupt) {
  const auto corrupt = [](auto change) {
    Reservations::Saved saved = sample();
    change(saved);
    const auto back = decode_reservations(encode_reservations(saved, kNguid), kNguid);
    return !back && back.error() == Errc::kCorrupt;
  };
  EXPECT_TRUE(corrupt([](auto& saved) { saved.holder = {9}; }));
  EXPECT_TRUE(corrupt([](auto& saved) { saved.type = ReservationType{7}; }));
  EXPECT_TRUE(corrupt([](auto& saved) { saved.registrations[0].key = 0; }));
  EXPECT_TRUE(corrupt([](auto& saved) { saved.registrations[0].host = {2}; }));
  EXPECT_TRUE(corrupt([](auto& saved) {
    saved.type = ReservationType::kWriteExclusiveAll;
    saved.registrations.clear();
  }));
  EXPECT_TRUE(corrupt([](auto& saved) { saved.registrations.resize(1000, {{5}, 1}); }));
}

TEST(ReservationState, RandomBytesAreRefused) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = encode_reservations(sample(), kNguid);
    const uint64_t changes = 1 + rng.below(4);
    for (uint64_t n = 0; n < changes; ++n) {
      bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
    }
    const auto back = decode_reservations(sealed(bytes), kNguid);
    if (back) {
      EXPECT_LE(back->type, ReservationType::kExclusiveAccessAll);
    }
  }
}

}  // namespace
}  // namespace cairn::nvme
