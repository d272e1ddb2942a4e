// SPDX-License-Identifier: Apache-2.0
TEST(Thing, HasItsMagicFirst) { EXPECT_EQ(load<uint64_t>(encoded()), 7u); }
