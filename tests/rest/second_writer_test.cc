// SPDX-License-Identifier: Apache-2.0
// Two that have one drive: who is told, and when.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rest/scene.h"
#include "task/deadline.h"

namespace cairn::rest {
namespace {

using drive::Drive;

constexpr size_t kObject = 16384;
constexpr const char* kPlace = "?size=256K&object=16K&check_ms=1000";

// Whether a write is refused for good because another has the drive.
bool is_taken(const Result<void>& done) { return !done && done.error() == Errc::kDenied; }

TEST(RestSecondWriter, TheFirstIsToldWithinTheTimeAskedFor) {
  HttpServer server({.conditions = false, .etags_on_put = false});
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> first = co_await must_open(env, kPlace);
    std::unique_ptr<Drive> second = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(first && second);
    const std::vector<std::byte> data = filled(1, kObject);
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    EXPECT_TRUE(slept);
    Result<void> done = co_await second->write(Lba(0), data);
    EXPECT_TRUE(done);
    done = co_await first->write(Lba(0), filled(2, kObject));
    EXPECT_TRUE(is_taken(done));
    EXPECT_EQ(fact(*first, "taken_by_another"), 1u);
    CO_ASSERT_TRUE(first->concerns().size() == 1 && second->concerns().empty());
    EXPECT_EQ(first->concerns()[0].code, "taken_by_another");
    done = co_await first->discard(Lba(0), 4);
    EXPECT_TRUE(is_taken(done)) << "for good";
    std::vector<std::byte> back(kObject);
    done = co_await first->read(Lba(0), back);
    EXPECT_TRUE(done) << "it may still read";
    EXPECT_EQ(back, data);
    co_await first->close();
    co_await second->close();
  });
}

TEST(RestSecondWriter, BeforeEachChangeWhenAskedFor) {
  HttpServer server({.conditions = false, .etags_on_put = false});
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> first = co_await must_open(env, "?size=256K&check_ms=0");
    std::unique_ptr<Drive> second = co_await must_open(env, "");
    CO_ASSERT_TRUE(first && second);
    const Result<void> done = co_await first->write(Lba(0), filled(2, kObject));
    EXPECT_TRUE(is_taken(done));
    co_await first->close();
    co_await second->close();
  });
}

TEST(RestSecondWriter, AnObjectThatAnotherReplacedIsNotOverwritten) {
  for (const bool conditions : {true, false}) {
    HttpServer server({.conditions = conditions});
    with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
      std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
      CO_ASSERT_TRUE(drive != nullptr);
      Result<void> done = co_await drive->write(Lba(0), filled(1, kObject));
      EXPECT_TRUE(done);
      const std::string foreign(kObject, 'f');
      server.replace("/v/00000000", foreign);
      done = co_await drive->write(Lba(0), filled(2, kObject));
      EXPECT_TRUE(is_taken(done));
      EXPECT_EQ(server.objects["/v/00000000"].bytes, foreign);
      co_await drive->close();
    });
  }
}

TEST(RestSecondWriter, NorOneThatWasPutBetweenReadingAndWriting) {
  for (const bool conditions : {true, false}) {
    HttpServer server({.conditions = conditions, .etags_on_put = false});
    const std::string foreign(kObject, 'f');
    server.trouble = [&](const ServedRequest& request) {
      // After the object was read, and before what comes next.
      const bool is_next = request.target == "/v/00000001" && request.method != "GET";
      if (is_next && !server.objects.contains(request.target)) {
        server.replace(request.target, foreign);
      }
      return Trouble();
    };
    with_server(server, [](env::Env& env) -> task::Task<void> {
      std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
      CO_ASSERT_TRUE(drive != nullptr);
      const Result<void> done = co_await drive->write(Lba(5), filled(2, 4096));
      EXPECT_TRUE(is_taken(done));
      co_await drive->close();
    });
    EXPECT_EQ(server.objects["/v/00000001"].bytes, foreign);
  }
}

TEST(RestSecondWriter, ItsOwnRepeatedPutIsNoStranger) {
  HttpServer server;
  bool was_cut = false;
  server.trouble = [&was_cut](const ServedRequest& request) {
    const bool is_second = request.method == "PUT" && request.fields.contains("if-match") &&
                           request.target == "/v/00000000" && !was_cut;
    if (!is_second) return Trouble();
    was_cut = true;
    return Trouble{.cut = 0};  // carried out, and never answered
  };
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    for (uint8_t value = 1; value < 4; ++value) {
      const Result<void> done = co_await drive->write(Lba(0), filled(value, kObject));
      EXPECT_TRUE(done) << int{value};
    }
    EXPECT_GE(fact(*drive, "retries"), 1u);
    co_await drive->close();
  });
  EXPECT_TRUE(was_cut);
  EXPECT_EQ(server.objects["/v/00000000"].bytes, std::string(kObject, 3));
}

TEST(RestSecondWriter, ALabelThatIsGoneEndsTheDrive) {
  HttpServer server;
  with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, "?size=256K&check_ms=0");
    CO_ASSERT_TRUE(drive != nullptr);
    server.objects.erase("/v/label");
    const Result<void> done = co_await drive->write(Lba(0), filled(1, 4096));
    EXPECT_TRUE(is_taken(done));
    co_await drive->close();
  });
  EXPECT_TRUE(server.objects.empty());
}

}  // namespace
}  // namespace cairn::rest
