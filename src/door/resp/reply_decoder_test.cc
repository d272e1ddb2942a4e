// SPDX-License-Identifier: Apache-2.0
#include "door/resp/reply_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "door/resp/reply.h"

namespace cairn::door::resp {
namespace {

// Every kind of reply in one array.
std::string every_kind(int protocol) {
  Reply reply;
  reply.protocol = protocol;
  reply.array(14);
  reply.status("OK");
  reply.error("ERR no\r\nway");
  reply.integer(-42);
  reply.bulk("a\r\nb");
  reply.null();
  reply.null_array();
  reply.map(1);
  reply.bulk("key");
  reply.integer(1);
  reply.set(2);
  reply.integer(1);
  reply.integer(2);
  reply.push(1);
  reply.bulk("news");
  reply.boolean(true);
  reply.real("3.5");
  reply.big_number("12345678901234567890");
  reply.verbatim("txt", "words");
  reply.array(0);
  return reply.bytes;
}

Result<Value> decode(std::string_view bytes, size_t piece_size = SIZE_MAX) {
  ReplyDecoder decoder(1 << 20);
  Value value;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, piece_size);
    bytes.remove_prefix(piece.size());
    const Result<bool> whole = decoder.take(piece, value);
    if (!whole) return fail(whole.error());
    if (*whole) return value;
  }
  return fail(Errc::kClosed, "not whole");
}

TEST(Reply, HasTheBytesOfTheSecondVersion) {
  EXPECT_EQ(every_kind(2),
            "*14\r\n+OK\r\n-ERR no  way\r\n:-42\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n"
            "*2\r\n$3\r\nkey\r\n:1\r\n*2\r\n:1\r\n:2\r\n*1\r\n$4\r\nnews\r\n:1\r\n$3\r\n3.5\r\n"
            "$20\r\n12345678901234567890\r\n$5\r\nwords\r\n*0\r\n");
}

TEST(Reply, HasTheBytesOfTheThirdVersion) {
  EXPECT_EQ(every_kind(3),
            "*14\r\n+OK\r\n-ERR no  way\r\n:-42\r\n$4\r\na\r\nb\r\n_\r\n_\r\n"
            "%1\r\n$3\r\nkey\r\n:1\r\n~2\r\n:1\r\n:2\r\n>1\r\n$4\r\nnews\r\n#t\r\n,3.5\r\n"
            "(12345678901234567890\r\n=9\r\ntxt:words\r\n*0\r\n");
}

TEST(ReplyDecoder, UnderstandsEveryKindInPiecesOfAnySize) {
  for (const int protocol : {2, 3}) {
    const std::string bytes = every_kind(protocol);
    const Result<Value> whole = decode(bytes);
    ASSERT_TRUE(whole.has_value());
    ASSERT_EQ(whole->items.size(), 14U);
    EXPECT_EQ(whole->items[0].text, "OK");
    EXPECT_TRUE(whole->items[1].is_error());
    EXPECT_EQ(whole->items[2].integer, -42);
    EXPECT_EQ(whole->items[3].text, "a\r\nb");
    EXPECT_EQ(whole->items[4].marker, Marker::kNull);
    EXPECT_EQ(whole->items[5].marker, Marker::kNull);
    EXPECT_EQ(whole->items[6].items.size(), 2U);
    EXPECT_EQ(whole->items[7].items[1].integer, 2);
    EXPECT_EQ(whole->items[9].integer, 1);
    EXPECT_EQ(whole->items[12].text, "words");
    for (size_t size = 1; size < 20; ++size) {
      const Result<Value> cut = decode(bytes, size);
      ASSERT_TRUE(cut.has_value());
      EXPECT_EQ(*cut, *whole) << size;
    }
  }
}

TEST(ReplyDecoder, RefusesWhatIsNoReply) {
  for (const std::string_view bytes :
       {"x\r\n", "\r\n", ":x\r\n", ":1\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "%-1\r\n", "#x\r\n",
        "$1\r\nabc", "=2\r\nab\r\n", "$2000000\r\n", "|1\r\n"}) {
    const Result<Value> value = decode(bytes);
    ASSERT_FALSE(value.has_value());
    EXPECT_TRUE(value.error() == Errc::kCorrupt || value.error() == Errc::kLimit) << bytes;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "*1\r\n";
  EXPECT_EQ(decode(deep).error().code(), Errc::kLimit);
  std::string endless = "*1000000000\r\n";
  while (endless.size() < 100'000) endless += "_\r\n";
  EXPECT_EQ(decode(endless).error().code(), Errc::kLimit);
}

}  // namespace
}  // namespace cairn::door::resp
