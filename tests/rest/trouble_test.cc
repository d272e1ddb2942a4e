// SPDX-License-Identifier: Apache-2.0
// A server that fails, lags, or tells what is not so: what passes is tried again, and nothing wrong
// is taken for data.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rest/scene.h"
#include "task/deadline.h"

namespace cairn::rest {
namespace {

using drive::Drive;

constexpr size_t kObject = 16384;
constexpr const char* kPlace = "?size=256K&object=16K&retries=2&timeout_ms=1000";

bool is_object(const ServedRequest& request) { return request.target.starts_with("/v/0"); }

// Writes a part of an object, reads it back and compares, in spite of what the server does.
task::Task<void> write_and_read(env::Env& env, Result<void>& failed) {
  std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
  CO_ASSERT_TRUE(drive != nullptr);
  const std::vector<std::byte> data = filled(7, 8192);
  Result<void> done = co_await drive->write(Lba(1), data);
  if (done) {
    std::vector<std::byte> back(8192);
    done = co_await drive->read(Lba(1), back);
    if (done) {
      EXPECT_EQ(back, data);
    }
  }
  failed = done;
  co_await drive->close();
}

Result<void> run_against(HttpServer& server) {
  Result<void> failed;
  with_server(server, [&failed](env::Env& env) { return write_and_read(env, failed); });
  return failed;
}

TEST(RestTrouble, WhatPassesIsTriedAgain) {
  for (const uint16_t status : {429, 500, 502, 503, 504}) {
    HttpServer server;
    uint64_t requests = 0;
    server.trouble = [&](const ServedRequest& request) {
      const bool fails = is_object(request) && ++requests % 3 != 0;
      return Trouble{.status = fails ? status : uint16_t{0}};
    };
    EXPECT_TRUE(run_against(server)) << status;
  }
}

TEST(RestTrouble, WhatDoesNotPassIsAnError) {
  const std::pair<uint16_t, Errc> cases[] = {{503, Errc::kIo},
                                             {429, Errc::kLimit},
                                             {403, Errc::kDenied},
                                             {507, Errc::kNoSpace},
                                             {405, Errc::kUnsupported}};
  for (const auto& [status, code] : cases) {
    HttpServer server;
    server.trouble = [status](const ServedRequest& request) {
      return Trouble{.status =
                         is_object(request) && request.method == "PUT" ? status : uint16_t{0}};
    };
    const Result<void> done = run_against(server);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), code) << status;
  }
}

TEST(RestTrouble, ASlowServerIsWaitedForThenGivenUp) {
  for (const Duration delay : {900_ms, 5_s}) {
    HttpServer server;
    server.trouble = [delay](const ServedRequest& request) {
      return Trouble{.delay = is_object(request) && request.method != "HEAD" ? delay : 0_s};
    };
    const Result<void> done = run_against(server);
    EXPECT_EQ(done.has_value(), delay < 1_s);
    if (!done) {
      EXPECT_EQ(done.error().code(), Errc::kTimedOut);
    }
  }
}

TEST(RestTrouble, AServerMayHangUpBetweenRequests) {
  HttpServer server;
  server.trouble = [](const ServedRequest&) { return Trouble{.cut = SIZE_MAX}; };
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, "?size=256K&object=16K&retries=0");
    CO_ASSERT_TRUE(drive != nullptr);
    for (uint8_t value = 1; value < 4; ++value) {
      const Result<void> done = co_await drive->write(Lba(1), filled(value, 4096));
      EXPECT_TRUE(done) << int{value};
    }
    co_await drive->close();
  });
  EXPECT_GE(server.connections, server.requests);
}

TEST(RestTrouble, WrongLengthsAreNoData) {
  for (const int64_t wrong : {-1, 1, 100, 5 << 20}) {
    HttpServer server;
    server.trouble = [wrong](const ServedRequest& request) {
      return Trouble{.wrong_length = is_object(request) && request.method == "GET" ? wrong : 0};
    };
    const Result<void> done = run_against(server);
    ASSERT_FALSE(done) << wrong;
  }
}

TEST(RestTrouble, AnObjectOfAnotherSizeIsCorrupt) {
  for (const size_t size : {size_t{0}, size_t{5}, kObject - 1, kObject + 1, 3 * kObject}) {
    for (const bool ranges : {true, false}) {
      HttpServer server({.ranges = ranges});
      server.objects["/v/00000000"] = {.bytes = std::string(size, 'x'), .version = 99};
      with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
        const HttpServer::Object object = server.objects["/v/00000000"];
        server.objects.clear();
        std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
        CO_ASSERT_TRUE(drive != nullptr);
        server.objects["/v/00000000"] = object;
        std::vector<std::byte> back(4096);
        Result<void> done = co_await drive->read(Lba(2), back);
        EXPECT_TRUE(!done && done.error() == Errc::kCorrupt);
        done = co_await drive->write(Lba(2), back);
        EXPECT_TRUE(!done && done.error() == Errc::kCorrupt);
        EXPECT_EQ(server.objects["/v/00000000"].bytes, object.bytes);
        co_await drive->close();
      });
    }
  }
}

TEST(RestTrouble, NoAnswerIsBelievedThatIsNotHttp) {
  const char* const kAnswers[] = {
      "SSH-2.0-OpenSSH\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 20\r\n\r\n",
      "HTTP/1.1 206 OK\r\nContent-Length: 8192\r\nContent-Range: bytes 0-8191/16384\r\n\r\n",
      "HTTP/1.1 206 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 206 OK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 204 OK\r\n\r\n",
  };
  for (const char* const text : kAnswers) {
    HttpServer server;
    server.trouble = [text](const ServedRequest& request) {
      const bool is_it = is_object(request) && request.method == "GET";
      return Trouble{.instead = is_it ? text : ""};
    };
    EXPECT_FALSE(run_against(server)) << text;
  }
}

task::Task<void> hear_nothing(env::Env& env, bool& is_silent) {
  std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
  CO_ASSERT_TRUE(drive != nullptr);
  EXPECT_TRUE(drive->concerns().empty());
  is_silent = true;
  std::vector<std::byte> data(kObject);
  Result<void> done = co_await drive->read(Lba(0), data);
  EXPECT_FALSE(done);
  CO_ASSERT_TRUE(drive->concerns().size() == 1);
  EXPECT_EQ(drive->concerns()[0].code, "unreachable");
  EXPECT_EQ(drive->concerns()[0].health, drive::Health::kFailing);
  is_silent = false;
  done = co_await drive->read(Lba(0), data);
  EXPECT_TRUE(done);
  EXPECT_TRUE(drive->concerns().empty());
  co_await drive->close();
}

TEST(RestTrouble, AServerThatIsSilentIsAConcernUntilItAnswers) {
  HttpServer server;
  bool is_silent = false;
  server.trouble = [&is_silent](const ServedRequest&) {
    return Trouble{.delay = is_silent ? 5_s : 0_s};
  };
  with_server(server, [&is_silent](env::Env& env) { return hear_nothing(env, is_silent); });
}

TEST(RestTrouble, AReadThatIsCancelledEndsAtOnce) {
  HttpServer server;
  server.trouble = [](const ServedRequest& request) {
    return Trouble{.delay = is_object(request) && request.method != "HEAD" ? 500_ms : 0_s};
  };
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    const Time begun = env.now();
    task::Deadline deadline(env, begun + 10_ms);
    std::vector<std::byte> data(kObject);
    Result<void> done = co_await drive->read(Lba(0), data, deadline.token());
    EXPECT_TRUE(!done && done.error() == Errc::kTimedOut);
    EXPECT_EQ(env.now() - begun, 10_ms);
    // A write that is on its way ends with the server's answer.
    task::Deadline other(env, env.now() + 10_ms);
    done = co_await drive->write(Lba(0), data, other.token());
    EXPECT_TRUE(done);
    EXPECT_LT(env.now() - begun, 1_s);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::rest
