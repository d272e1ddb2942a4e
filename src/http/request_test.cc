// SPDX-License-Identifier: Apache-2.0
#include "http/request.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cairn::http {
namespace {

RequestParsed parse(std::string_view text) { return parse_request(as_bytes(text)); }

int status_of(std::string_view text) {
  const RequestParsed parsed = parse(text);
  return parsed ? 200 : static_cast<int>(parsed.error());
}

std::string with_host(std::string_view line) { return std::string(line) + "\r\nHost: a\r\n\r\n"; }

TEST(RequestHead, IsWhatPrometheusSends) {
  const std::string text =
      "GET /metrics?name=x HTTP/1.1\r\nHost: 127.0.0.1:9640\r\nUser-Agent: Prometheus/2.42.0\r\n"
      "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
      "X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n";
  const RequestParsed parsed = parse(text + "GET /");
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->size, text.size());
  EXPECT_EQ((*parsed)->method, "GET");
  EXPECT_EQ((*parsed)->path, "/metrics");
  EXPECT_EQ((*parsed)->query, "name=x");
  EXPECT_TRUE((*parsed)->keep_alive);
  EXPECT_FALSE((*parsed)->has_body);
}

TEST(RequestHead, IsNotThereUntilItsLastByte) {
  const std::string text = "\r\n" + with_host("HEAD http://box:9640/healthz HTTP/1.1");
  for (size_t size = 0; size < text.size(); ++size) {
    const RequestParsed parsed = parse(std::string_view(text).substr(0, size));
    ASSERT_TRUE(parsed && !*parsed) << size;
  }
  const RequestParsed parsed = parse(text);
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->path, "/healthz");
  EXPECT_EQ((*parsed)->size, text.size());
}

TEST(RequestHead, SaysWhetherAnotherRequestMayFollow) {
  EXPECT_FALSE((*parse("GET / HTTP/1.0\r\n\r\n"))->keep_alive);
  EXPECT_TRUE((*parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"))->keep_alive);
  EXPECT_FALSE((*parse("GET / HTTP/1.1\r\nHost: a\r\nconnection:close\r\n\r\n"))->keep_alive);
}

TEST(RequestHead, SaysWhetherABodyFollows) {
  EXPECT_TRUE((*parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"))->has_body);
  EXPECT_FALSE((*parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"))->has_body);
  EXPECT_TRUE((*parse("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n"))->has_body);
}

TEST(RequestHead, IsRefusedWithTheStatusThatSaysWhy) {
  for (const char* line :
       {"GET", "GET /", "GET / /a HTTP/1.1", "GET  HTTP/1.1", "G(T / HTTP/1.1",
        "GET metrics HTTP/1.1", "GET /\x01 HTTP/1.1", "\x16\x03\x01 / HTTP/1.1", "GET / SSH-2.0"}) {
    EXPECT_EQ(status_of(with_host(line)), 400) << line;
  }
  EXPECT_EQ(status_of(with_host("GET / HTTP/2.0")), 505);
  EXPECT_EQ(status_of(with_host("GET / HTTP/1.2")), 505);
  EXPECT_EQ(status_of(with_host(std::string(33, 'A') + " / HTTP/1.1")), 501);
  for (const char* fields :
       {"", "Host: a\r\nHost: a\r\n", "Host: a\r\n folded\r\n", "Host : a\r\n", "Host: a\nX: b\r\n",
        "Host: a\r\n: b\r\n", "Host: a\r\nX\r\n", "Host: a\r\nContent-Length: -1\r\n",
        "Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\n") + fields + "\r\n"), 400) << fields;
  }
}

TEST(RequestHead, HasALimitEverywhere) {
  const std::string path = "/" + std::string(kTargetMax - 1, 'a');
  EXPECT_EQ(status_of(with_host("GET " + path + " HTTP/1.1")), 200);
  EXPECT_EQ(status_of(with_host("GET " + path + "a HTTP/1.1")), 414);
  EXPECT_EQ(status_of("GET /" + std::string(2000, 'a')), 414);  // without an end
  std::string fields;
  for (size_t i = 1; i < kFieldsMax; ++i) fields += "a: b\r\n";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + fields + "Host: a\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\na: b\r\n" + fields + "Host: a\r\n\r\n"), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: " + std::string(kRequestHeadMax, 'a')), 431);
}

}  // namespace
}  // namespace cairn::http
