// SPDX-License-Identifier: Apache-2.0
#include "crypto/xts.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace cairn::crypto {
namespace {

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// 0, 1, ... 255 twice, the plaintext of IEEE 1619's vectors of 512 bytes.
std::vector<std::byte> counted() {
  std::vector<std::byte> bytes(512);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::vector<std::byte> ieee_key() {
  return from_hex(
      "2718281828459045235360287471352662497757247093699959574966967627"
      "3141592653589793238462643383279502884197169399375105820974944592");
}

// IEEE 1619-2007, Annex B, vector 10: data unit 0xff.
constexpr std::string_view kVector10 =
    "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b"
    "5d31e276f8fe4a8d66b317f9ac683f44680a86ac35adfc3345befecb4bb188fd"
    "5776926c49a3095eb108fd1098baec70aaa66999a72a82f27d848b21d4a741b0"
    "c5cd4d5fff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca"
    "2a3e7a7d7df7b10355165c8b9a6d0a7de8b062c4500dc4cd120c0f7418dae3d0"
    "b5781c34803fa75421c790dfe1de1834f280d7667b327f6c8cd7557e12ac3a0f"
    "93ec05c52e0493ef31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec"
    "583e9645e07b8d9670655ba5bbcfecc6dc3966380ad8fecb17b6ba02469a020a"
    "84e18e8f84252070c13e9f1f289be54fbc481457778f616015e1327a02b140f1"
    "505eb309326d68378f8374595c849d84f4c333ec4423885143cb47bd71c5edae"
    "9be69a2ffeceb1bec9de244fbe15992b11b77c040f12bd8f6a975a44a0f90c29"
    "a9abc3d4d893927284c58754cce294529f8614dcd2aba991925fedc4ae74ffac"
    "6e333b93eb4aff0479da9a410e4450e0dd7ae4c6e2910900575da401fc07059f"
    "645e8b7e9bfdef33943054ff84011493c27b3429eaedb4ed5376441a77ed4385"
    "1ad77f16f541dfd269d50d6a5f14fb0aab1cbb4c1550be97f7ab4066193c4caa"
    "773dad38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151";

TEST(Xts, MatchesIeee1619) {
  Xts xts(ieee_key());
  std::vector<std::byte> sector = counted();
  xts.encrypt(0xff, sector, sector);
  EXPECT_EQ(sector, from_hex(kVector10));
  xts.decrypt(0xff, sector, sector);
  EXPECT_EQ(sector, counted());
}

// Vectors 11 to 13 differ in the data unit alone; their first 16 bytes.
TEST(Xts, MatchesIeee1619WithLargeSectorNumbers) {
  Xts xts(ieee_key());
  const std::pair<uint64_t, std::string_view> vectors[] = {
      {0xffff, "77a31251618a15e6b92d1d66dffe7b50"},
      {0xffffff, "e387aaa58ba483afa7e8eb469778317e"},
      {0xffffffff, "bf53d2dade78e822a4d949a9bc6766b0"},
      {0xffffffffff, "64497e5a831e4a932c09be3e5393376d"},
  };
  for (const auto& [unit, start] : vectors) {
    std::vector<std::byte> sector(512);
    xts.encrypt(unit, counted(), sector);
    sector.resize(16);
    EXPECT_EQ(sector, from_hex(start)) << unit;
  }
}

TEST(Xts, EqualSectorsDifferByTheirPlace) {
  Xts xts(ieee_key());
  std::vector<std::byte> one(4096);
  std::vector<std::byte> other(4096);
  xts.encrypt(1, std::vector<std::byte>(4096), one);
  xts.encrypt(2, std::vector<std::byte>(4096), other);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace cairn::crypto
