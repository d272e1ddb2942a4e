// SPDX-License-Identifier: Apache-2.0
#include "door/resp/request_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "door/resp/client.h"
#include "door/resp/wire_format.h"

namespace cairn::door::resp {
namespace {

using namespace std::string_literals;
using Args = std::vector<std::string>;

// All requests in `bytes`, which come in pieces; in the end what was wrong, if anything.
struct Decoded {
  std::vector<Args> requests;
  std::string problem;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

Decoded decode(RequestDecoder& decoder, std::string_view bytes, size_t piece_size) {
  Decoded all;
  RequestArgs request;
  while (!bytes.empty()) {
    // A copy that goes, so that words in it would be missed.
    const std::string piece(bytes.substr(0, piece_size));
    bytes.remove_prefix(piece.size());
    std::string_view left = piece;
    for (;;) {
      const Result<bool> whole = decoder.take(left, request);
      if (!whole) {
        all.problem = RequestDecoder::problem(whole.error());
        return all;
      }
      if (!*whole) break;
      all.requests.emplace_back(request.args.begin(), request.args.end());
    }
    EXPECT_TRUE(left.empty());
  }
  return all;
}

Decoded decode(std::string_view bytes, size_t piece_size = SIZE_MAX) {
  RequestDecoder decoder;
  return decode(decoder, bytes, piece_size);
}

std::string problem_of(std::string_view bytes) { return decode(bytes).problem; }

TEST(RequestDecoder, TakesArraysOfBulks) {
  EXPECT_EQ(decode("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nx\r\ny\n\r\n").requests,
            (std::vector<Args>{{"SET", "a", "x\r\ny\n"}}));
  EXPECT_EQ(decode("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n").requests,
            (std::vector<Args>{{"ECHO", ""}, {"PING"}}));
}

TEST(RequestDecoder, TakesLinesThatSomebodyTypes) {
  EXPECT_EQ(decode("PING\r\n\r\n  get\ta \n").requests,
            (std::vector<Args>{{"PING"}, {"get", "a"}}));
  EXPECT_EQ(decode(R"(set "a b" 'c\'d\n' "\x41\n\"")"
                   "\r\n")
                .requests,
            (std::vector<Args>{{"set", "a b", "c'd\\n", "A\n\""}}));
}

TEST(RequestDecoder, PassesOverArraysOfNothing) {
  EXPECT_EQ(decode("*0\r\n*-1\r\n*1\r\n$1\r\na\r\n").requests, (std::vector<Args>{{"a"}}));
}

TEST(RequestDecoder, GivesTheSameForPiecesOfAnySize) {
  const std::string long_word(3000, 'x');
  std::string bytes =
      "*2\r\n$4\r\nECHO\r\n$3000\r\n" + long_word + "\r\n\"quoted word\" b\r\n*0\r\n";
  bytes += "*3\r\n$1\r\na\r\n$0\r\n\r\n$2\r\nbb\r\nPING\r\n";
  const Decoded whole = decode(bytes);
  EXPECT_EQ(whole.requests.size(), 4U);
  for (size_t size = 1; size < 40; ++size) EXPECT_EQ(decode(bytes, size), whole) << size;
}

TEST(RequestDecoder, SaysWhatIsWrongAsRedisDoes) {
  EXPECT_EQ(problem_of("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(problem_of("*2000000\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(problem_of("*1\r\nfoo\r\n"), "Protocol error: expected '$', got 'f'");
  EXPECT_EQ(problem_of("*1\r\n$x\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(problem_of("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(problem_of("*1\r\n$536870912\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(problem_of("get 'a\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(problem_of("get \"a\"b\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(problem_of(std::string(70'000, 'x')), "Protocol error: too big inline request");
  EXPECT_EQ(problem_of("*" + std::string(70'000, '1')),
            "Protocol error: too big mbulk count string");
  EXPECT_EQ(problem_of("*1\r\n$" + std::string(70'000, '1')),
            "Protocol error: too big bulk count string");
}

TEST(RequestDecoder, TakesLittleFromStrangers) {
  RequestDecoder decoder;
  decoder.set_stranger(true);
  EXPECT_EQ(decode(decoder, "*2\r\n$4\r\nAUTH\r\n$6\r\nsesame\r\n", SIZE_MAX).requests.size(), 1U);
  EXPECT_EQ(decode(decoder, "*11\r\n", SIZE_MAX).problem,
            "Protocol error: unauthenticated multibulk length");
  RequestDecoder other;
  other.set_stranger(true);
  EXPECT_EQ(decode(other, "*1\r\n$16385\r\n", SIZE_MAX).problem,
            "Protocol error: unauthenticated bulk length");
}

TEST(RequestDecoder, TakesMemoryForWhatHasArrived) {
  RequestDecoder decoder;
  decode(decoder, "*1000000\r\n$16777216\r\nabc", SIZE_MAX);
  EXPECT_TRUE(decoder.is_partial());
  EXPECT_LT(decoder.held(), 4096U);
}

TEST(RequestDecoder, RefusesARequestThatIsTooLargeAsAWhole) {
  std::string bytes = "*100\r\n";
  const std::string word = "$16777216\r\n" + std::string(kBulkBytesMax, 'x') + "\r\n";
  for (int i = 0; i < 4; ++i) bytes += word;
  EXPECT_EQ(problem_of(bytes), "Protocol error: a request of more than 64 MiB");
}

TEST(RequestDecoder, KeepsLittleWhenItIsIdle) {
  RequestDecoder decoder;
  std::string bytes = "*1\r\n$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n";
  decode(decoder, bytes, 1000);
  EXPECT_FALSE(decoder.is_partial());
  EXPECT_LT(decoder.held(), 4096U);
}

TEST(RequestDecoder, UnderstandsWhatOurClientSays) {
  const std::vector<std::string_view> args = {"SET", std::string_view("\0\r\n$*", 5), ""};
  const std::string bytes = encode_request(args);
  EXPECT_EQ(bytes, "*3\r\n$3\r\nSET\r\n$5\r\n\0\r\n$*\r\n$0\r\n\r\n"s);
  EXPECT_EQ(decode(bytes).requests, (std::vector<Args>{{"SET", "\0\r\n$*"s, ""}}));
}

}  // namespace
}  // namespace cairn::door::resp
