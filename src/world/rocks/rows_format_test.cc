// SPDX-License-Identifier: Apache-2.0
#include "world/rocks/rows_format.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace cairn::rocks {
namespace {

const meta::Row kRow{
    {"key", "value", meta::Revision(2), meta::Revision(3), meta::LeaseId(4)}, false, 5};

TEST(RowsFormat, ComesBackAsItWas) {
  const std::string key = row_key({meta::Revision(3), 5});
  const Result<meta::Row> row = read_row(key, row_value(kRow));
  ASSERT_TRUE(row);
  EXPECT_EQ(*row, kRow);
  const meta::Lease lease{meta::LeaseId(7), 5_s};
  EXPECT_EQ(*read_lease(lease_key(lease.id), lease_value(lease)), lease);
  const Totals totals{meta::Revision(3), meta::Revision(1), meta::LeaseId(7)};
  EXPECT_EQ(*read_totals(totals_value(totals)), totals);
  EXPECT_TRUE(check_format(format_value()));
}

TEST(RowsFormat, LiesInTheOrderOfCommits) {
  EXPECT_LT(row_key({meta::Revision(255), 9}), row_key({meta::Revision(256), 0}));
  EXPECT_LT(row_key({meta::Revision(256), 255}), row_key({meta::Revision(256), 256}));
  EXPECT_LT(lease_key(meta::LeaseId(255)), lease_key(meta::LeaseId(256)));
}

TEST(RowsFormat, HasTheseBytes) {
  EXPECT_EQ(row_key({meta::Revision(0x102), 3}), std::string("r\0\0\0\0\0\0\1\2\0\0\0\3", 13));
  const std::string value = row_value(kRow);
  EXPECT_EQ(value.substr(0, value.size() - 4),
            std::string("\0\2\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\3\0\0\0keyvalue", 29));
  EXPECT_EQ(format_value(), std::string("cairn metadata\1\0\0\0", 18));
}

TEST(RowsFormat, DamageAndMisplacementAreNoticed) {
  const std::string key = row_key({meta::Revision(3), 5});
  const std::string good = row_value(kRow);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_EQ(read_row(key, bad).error().code(), Errc::kCorrupt) << at;
    EXPECT_FALSE(read_row(key, good.substr(0, at)));
  }
  EXPECT_FALSE(read_row(row_key({meta::Revision(3), 6}), good)) << "of another place";
  EXPECT_FALSE(read_row("r", good));
  EXPECT_FALSE(read_lease("l", ""));
  EXPECT_FALSE(read_totals(""));
  EXPECT_FALSE(check_format("something else"));
  EXPECT_FALSE(check_format(std::string("cairn metadata\2\0\0\0", 18)));
}

}  // namespace
}  // namespace cairn::rocks
