// SPDX-License-Identifier: Apache-2.0
#include "trace/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "trace/cairn_format.h"
#include "trace/reader.h"

namespace cairn::trace {
namespace {

TEST(Search, HasThePapersSizes) {
  Search search({.space = 1UL << 30, .per_second = 1000});
  std::vector<uint32_t> sizes;
  double sum = 0;
  Record last;
  for (int i = 0; i < 1'000'000; ++i) {
    const Record record = search.next();
    EXPECT_FALSE(record.write);
    EXPECT_LE(record.offset + record.bytes, 1UL << 30);
    EXPECT_GE(record.arrival, last.arrival);
    sizes.push_back(record.bytes);
    sum += record.bytes;
    last = record;
  }
  std::ranges::sort(sizes);
  EXPECT_NEAR(sum / 1e6, 36 * 1024, 360);
  EXPECT_EQ(sizes[500'000], 32U * 1024);
  EXPECT_EQ(sizes.front(), 4096U);
  EXPECT_LE(sizes.back(), kSearchBytesMax);
  EXPECT_GT(sizes.back(), 6U << 20);
  EXPECT_NEAR(static_cast<double>(last.arrival) / 1e9, 1000, 10);
}

TEST(CairnFormat, WhatIsWrittenIsRead) {
  std::string text(kCairnHeading);
  std::vector<std::byte> line(200);
  const auto add = [&](const CairnLine& one) {
    const size_t length = write_line(one, line);
    text += as_text(Bytes(line).first(length));
  };
  add({.arrival = 700,
       .kind = "write",
       .offset = 8192,
       .bytes = 4096,
       .latency = 5,
       .result = "ok"});
  add({.arrival = 500, .kind = "read", .offset = 0, .bytes = 512, .latency = 900, .result = "io"});
  add({.arrival = 900, .kind = "flush", .latency = 1, .result = "ok"});
  text += "\n\n" + std::string(100, '\0');
  Outcome<Reader> reader = Reader::open(std::make_unique<TextSource>(text), {});
  ASSERT_TRUE(reader) << reader.error().text;
  EXPECT_STREQ(reader->format_title(), "Cairn");
  const auto first = reader->next();
  ASSERT_TRUE(first && *first);
  EXPECT_FALSE((*first)->write);
  EXPECT_EQ((*first)->bytes, 512U);
  const auto second = reader->next();
  ASSERT_TRUE(second && *second);
  EXPECT_TRUE((*second)->write);
  EXPECT_EQ((*second)->arrival, 200);
  EXPECT_EQ((*second)->offset, 8192U);
  const auto third = reader->next();
  EXPECT_TRUE(third && !*third);
  EXPECT_EQ(write_line({.kind = "read", .result = "ok"}, MutableBytes(line).first(8)), 0U);
}

TEST(CairnFormat, ALineOfAnotherKindIsAMistake) {
  const std::string text = std::string(kCairnHeading) + ",1,read,0,512,1,ok\n,1,erase,0,512,1,ok\n";
  Outcome<Reader> reader = Reader::open(std::make_unique<TextSource>(text), {.reorder = 1});
  ASSERT_TRUE(reader);
  auto next = reader->next();
  while (next && *next) next = reader->next();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().line, 3U);
  EXPECT_EQ(next.error().field, "kind");
}

}  // namespace
}  // namespace cairn::trace
