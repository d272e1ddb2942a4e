// SPDX-License-Identifier: Apache-2.0
#include "base/sip_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

// The example of the paper, appendix A, and others of its reference.
TEST(SipHash, GivesTheNumbersOfThePaper) {
  const SipKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::vector<std::byte> bytes;
  for (int i = 0; i < 15; ++i) bytes.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(sip_hash(key, bytes), 0xa129ca6149be45e5);
  EXPECT_EQ(sip_hash(key, Bytes()), 0x726fdb47dd0e0e31);
  EXPECT_EQ(sip_hash(key, Bytes(bytes).first(1)), 0x74f839c593dc67fd);
  EXPECT_EQ(sip_hash(key, Bytes(bytes).first(8)), 0x93f5f5799a932462);
  EXPECT_EQ(sip_hash(key, uint64_t{0x0706050403020100}), 0x93f5f5799a932462);
}

}  // namespace
}  // namespace cairn
