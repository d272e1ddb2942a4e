// SPDX-License-Identifier: Apache-2.0
#include "http/response.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cairn::http {
namespace {

Result<std::optional<ResponseHead>> parse(std::string_view text) {
  return parse_head(as_bytes(text));
}

TEST(ResponseHead, IsReadWhenAllOfItIsThere) {
  const std::string text =
      "HTTP/1.1 206 Partial Content\r\nServer: nginx\r\nContent-Length: 512\r\n"
      "ETag: \"65f-200\"\r\nContent-Range: bytes 1024-1535/65536\r\n\r\nbody";
  const size_t size = text.size() - 4;
  for (size_t length = 0; length < size; ++length) {
    const auto head = parse(text.substr(0, length));
    ASSERT_TRUE(head);
    EXPECT_FALSE(head->has_value()) << length;
  }
  const auto head = parse(text);
  ASSERT_TRUE(head && *head);
  EXPECT_EQ((*head)->size, size);
  EXPECT_EQ((*head)->status, 206);
  EXPECT_TRUE((*head)->keep_alive);
  EXPECT_EQ((*head)->length, 512u);
  EXPECT_EQ((*head)->etag, "\"65f-200\"");
  EXPECT_EQ((*head)->range, (ContentRange{1024, 1535, 65536}));
}

TEST(ResponseHead, SaysHowTheBodyEnds) {
  EXPECT_TRUE((*parse("HTTP/1.1 200\r\ntransfer-encoding: Chunked\r\n\r\n"))->is_chunked);
  EXPECT_FALSE((*parse("HTTP/1.1 200 OK\r\n\r\n"))->length);
  EXPECT_FALSE((*parse("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"))->keep_alive);
  EXPECT_FALSE((*parse("HTTP/1.0 200 OK\r\n\r\n"))->keep_alive);
  EXPECT_TRUE((*parse("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n"))->keep_alive);
  EXPECT_EQ((*parse("HTTP/1.1 200 OK\r\nContent-Length:  7 \r\ncontent-length: 7\r\n\r\n"))->length,
            7u);
}

TEST(ResponseHead, KeepsOnlyEtagsThatAreSome) {
  EXPECT_EQ((*parse("HTTP/1.1 200 OK\r\nETag: W/\"a\"\r\n\r\n"))->etag, "W/\"a\"");
  for (const char* wrong : {"a", "\"a", "\"a\"b\"", "\"a b\"", "\""}) {
    const auto head = parse(std::string("HTTP/1.1 200 OK\r\nETag: ") + wrong + "\r\n\r\n");
    ASSERT_TRUE(head && *head) << wrong;
    EXPECT_EQ((*head)->etag, "") << wrong;
  }
  const std::string longer(kEtagMax, 'x');
  EXPECT_EQ((*parse("HTTP/1.1 200 OK\r\nETag: \"" + longer + "\"\r\n\r\n"))->etag, "");
}

TEST(ResponseHead, RefusesWhatMakesNoSense) {
  const std::pair<const char*, Errc> cases[] = {
      {"hello\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1\r\n\r\n", Errc::kUnsupported},
      {"HTTP/3 200 OK\r\n\r\n", Errc::kUnsupported},
      {"HTTP/1.1 2 OK\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 099 OK\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 2000 OK\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\na b: x\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\na: \n\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       Errc::kCorrupt},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Errc::kUnsupported},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", Errc::kUnsupported},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-4/10\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-10/10\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 206 OK\r\nContent-Range: lines 0-1/10\r\n\r\n", Errc::kCorrupt},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 0/10-1\r\n\r\n", Errc::kCorrupt},
  };
  for (const auto& [text, code] : cases) {
    const auto head = parse(text);
    ASSERT_FALSE(head) << text;
    EXPECT_EQ(head.error().code(), code) << text;
  }
  const auto endless = parse("HTTP/1.1 200 OK\r\na: " + std::string(kHeadMax, 'x'));
  EXPECT_TRUE(!endless && endless.error() == Errc::kCorrupt);
}

// The data of a body that arrives in pieces of `step` bytes; "?" for a wrong one.
std::string read_chunks(std::string_view text, size_t step, bool& is_over) {
  ChunkedBody body;
  std::string data;
  while (!text.empty() && !body.is_over()) {
    const std::string_view piece = text.substr(0, step);
    Bytes left = as_bytes(piece);
    do {
      const Result<Bytes> found = body.take(left);
      if (!found) return "?";
      data += as_text(*found);
    } while (!left.empty() && !body.is_over());
    text.remove_prefix(piece.size() - left.size());
  }
  is_over = body.is_over();
  return data;
}

TEST(ChunkedBody, IsTheSameInPiecesOfAnySize) {
  const std::string_view text =
      "5\r\nhello\r\n1;a=b\r\n,\r\n00A  \r\n 0123456789"
      "\r\n0\r\nTrailer: x\r\n\r\n";
  bool is_over = false;
  for (size_t step = 1; step <= text.size(); ++step) {
    // Ten bytes follow the third size: " 012345678"; then '9' is where CR belongs.
    EXPECT_EQ(read_chunks(text, step, is_over), "?") << step;
  }
  const std::string_view right =
      "5\r\nhello\r\n1;a=b\r\n,\r\n00B  \r\n 0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  for (size_t step = 1; step <= right.size(); ++step) {
    EXPECT_EQ(read_chunks(right, step, is_over), "hello, 0123456789") << step;
    EXPECT_TRUE(is_over);
  }
}

TEST(ChunkedBody, RefusesWhatMakesNoSense) {
  bool is_over = false;
  for (const std::string& text :
       {std::string("\r\n"), std::string("g\r\n"), std::string("5\n"), std::string("1\r\nab\r\n"),
        std::string("0123456789abcdef0\r\n"), "1;" + std::string(kChunkExtensionMax + 1, 'x'),
        std::string("0\r\n\n"), "0\r\n" + std::string(kTrailersMax + 1, 'x')}) {
    EXPECT_EQ(read_chunks(text, 7, is_over), "?") << text;
  }
  EXPECT_EQ(read_chunks("5\r\nhel", 3, is_over), "hel");
  EXPECT_FALSE(is_over);
}

}  // namespace
}  // namespace cairn::http
