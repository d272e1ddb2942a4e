// SPDX-License-Identifier: Apache-2.0
#include "testing/fabric/oracle.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::fabric_tests {
namespace {

std::vector<std::byte> block(uint64_t value, uint64_t lba = 0) {
  std::vector<std::byte> bytes(kBlock);
  fill_block(bytes, value, lba);
  return bytes;
}
bool accepts(Oracle oracle, uint64_t value) {
  oracle.end_read(oracle.begin_read(0, 1), block(value));
  return oracle.wrong().empty();
}

TEST(Oracle, AcknowledgedWriteIsWhatIsThere) {
  Oracle oracle(1);
  oracle.end_write(oracle.begin_write(0, 1, 5), true, false);
  EXPECT_TRUE(accepts(oracle, 5));
  EXPECT_FALSE(accepts(oracle, 0)) << "an older value";
  EXPECT_FALSE(accepts(oracle, 6)) << "never written";
}

TEST(Oracle, WriteInDoubtMayHaveHappened) {
  Oracle oracle(1);
  oracle.end_write(oracle.begin_write(0, 1, 5), false, false);
  EXPECT_TRUE(accepts(oracle, 5));
  EXPECT_TRUE(accepts(oracle, 0));
  oracle.end_read(oracle.begin_read(0, 1), block(0));
  EXPECT_FALSE(accepts(oracle, 5)) << "it was seen not to have happened";
}

TEST(Oracle, PowerLossTakesWhatWasNotFlushed) {
  Oracle oracle(1);
  oracle.end_write(oracle.begin_write(0, 1, 5), true, false);
  Oracle flushed = oracle;
  flushed.end_flush(0, 1);
  oracle.box_started();
  flushed.box_started();
  EXPECT_TRUE(accepts(oracle, 0));
  EXPECT_TRUE(accepts(oracle, 5));
  EXPECT_FALSE(accepts(flushed, 0));
  EXPECT_TRUE(accepts(flushed, 5));
}

TEST(Oracle, DurableWriteStays) {
  Oracle oracle(1);
  oracle.end_write(oracle.begin_write(0, 1, 5), true, true);
  oracle.box_started();
  EXPECT_FALSE(accepts(oracle, 0));
}

TEST(Oracle, MixturesAndMisplacedBlocksAreSeen) {
  Oracle oracle(2);
  oracle.end_write(oracle.begin_write(0, 1, 5), true, false);
  std::vector<std::byte> mixed = block(5);
  fill_block(MutableBytes(mixed).subspan(512, 512), 0, 0);
  Oracle other = oracle;
  other.end_read(other.begin_read(0, 1), mixed);
  EXPECT_NE(other.wrong(), "");
  oracle.end_read(oracle.begin_read(0, 1), block(5, 1));
  EXPECT_NE(oracle.wrong(), "");
}

}  // namespace
}  // namespace cairn::fabric_tests
