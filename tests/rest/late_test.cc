// SPDX-License-Identifier: Apache-2.0
// Requests that the server carries out long after they were given up: what was acknowledged since
// stays.
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
constexpr uint64_t kBlocks = kObject / 4096;
constexpr const char* kObjectName = "/v/00000000";
constexpr const char* kPlace = "?size=256K&object=16K&retries=2&timeout_ms=1000&check_ms=0";
constexpr const char* kOnce = "?size=256K&object=16K&retries=0&timeout_ms=1000&check_ms=0";
constexpr Duration kStall = 60_s;

// Stalls the `nth` request of that method for the first object, from 1.
void stall(HttpServer& server, std::string method, int nth) {
  server.trouble = [method, left = nth](const ServedRequest& request) mutable {
    const bool is_it = request.target == kObjectName && request.method == method && --left == 0;
    return Trouble{.delay = is_it ? kStall : 0_s};
  };
}

task::Task<void> let_it_land(env::Env& env) {
  const Result<void> slept = co_await task::sleep_for(env, 2 * kStall);
  EXPECT_TRUE(slept);
}

task::Task<void> expect_first_object(Drive& drive, uint8_t value) {
  std::vector<std::byte> back(kObject);
  const Result<void> done = co_await drive.read(Lba(0), back);
  EXPECT_TRUE(done);
  EXPECT_EQ(back, filled(value, kObject));
}

TEST(RestLate, APutThatStallsDoesNotUndoALaterWrite) {
  for (const bool etags_on_put : {true, false}) {
    for (const int nth : {1, 2}) {
      HttpServer server({.etags_on_put = etags_on_put});
      stall(server, "PUT", nth);
      with_server(server, [](env::Env& env) -> task::Task<void> {
        std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
        CO_ASSERT_TRUE(drive != nullptr);
        for (uint8_t value = 1; value < 5; ++value) {
          const Result<void> done = co_await drive->write(Lba(0), filled(value, kObject));
          EXPECT_TRUE(done) << int{value};
        }
        EXPECT_GE(fact(*drive, "retries"), 1u) << "it was sent again";
        co_await let_it_land(env);
        co_await expect_first_object(*drive, 4);
        co_await drive->close();
      });
    }
  }
}

TEST(RestLate, NorDoesOneOfAPartOfAnObject) {
  HttpServer server;
  stall(server, "PUT", 1);
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const Result<void> done = co_await drive->write(Lba(block), filled(5, 4096));
      EXPECT_TRUE(done) << block;
    }
    co_await let_it_land(env);
    co_await expect_first_object(*drive, 5);
    co_await drive->close();
  });
}

TEST(RestLate, ADeleteThatStallsDoesNotUndoALaterWrite) {
  HttpServer server;
  stall(server, "DELETE", 1);
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    Result<void> done = co_await drive->write(Lba(0), filled(1, kObject));
    EXPECT_TRUE(done);
    done = co_await drive->write_zeroes(Lba(0), kBlocks);
    EXPECT_TRUE(done);
    done = co_await drive->write(Lba(0), filled(2, kObject));
    EXPECT_TRUE(done);
    co_await let_it_land(env);
    co_await expect_first_object(*drive, 2);
    co_await drive->close();
  });
}

task::Task<void> write_then_zero(env::Env& env, const char* place, uint64_t at_once) {
  std::unique_ptr<Drive> drive = co_await must_open(env, place);
  CO_ASSERT_TRUE(drive != nullptr);
  Result<void> done = co_await drive->write(Lba(0), filled(1, kObject));
  EXPECT_EQ(done.has_value(), place == kPlace) << "without another attempt it fails";
  for (uint64_t block = 0; block < kBlocks; block += at_once) {
    done = co_await drive->write_zeroes(Lba(block), at_once);
    EXPECT_TRUE(done);
  }
  co_await let_it_land(env);
  co_await expect_first_object(*drive, 0);
  co_await drive->close();
}

// "Absent" is the one version that comes again.
TEST(RestLate, APutThatStallsDoesNotUndoLaterZeroes) {
  for (const char* const place : {kPlace, kOnce}) {
    for (const uint64_t at_once : {kBlocks, uint64_t{1}}) {
      HttpServer server;
      stall(server, "PUT", 1);
      with_server(server, [&](env::Env& env) { return write_then_zero(env, place, at_once); });
    }
  }
}

TEST(RestLate, AFailedWriteThatLandsIsNoStranger) {
  HttpServer server;
  bool was_stalled = false;
  server.trouble = [&server, &was_stalled](const ServedRequest& request) {
    if (request.target != kObjectName || request.method != "PUT") return Trouble();
    if (!was_stalled) {
      was_stalled = true;
      return Trouble{.delay = kStall};
    }
    // The stalled one comes first after all, between our looking and our putting.
    if (!server.objects.contains(kObjectName)) {
      server.replace(kObjectName, std::string(kObject, 1));
    }
    return Trouble();
  };
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kOnce);
    CO_ASSERT_TRUE(drive != nullptr);
    Result<void> done = co_await drive->write(Lba(0), filled(1, kObject));
    EXPECT_TRUE(!done && done.error() == Errc::kTimedOut);
    done = co_await drive->write(Lba(0), filled(2, kObject));
    EXPECT_TRUE(done);
    EXPECT_EQ(fact(*drive, "taken_by_another"), 0u);
    co_await let_it_land(env);
    co_await expect_first_object(*drive, 2);
    co_await drive->close();
  });
}

TEST(RestLate, ConditionsCountOnlyWhereTheyBringChangesIntoAnOrder) {
  const ServerHabits kDisorderly[] = {
      {.conditions = false}, {.delete_conditions = false}, {.content_etags = true}};
  for (const ServerHabits& habits : kDisorderly) {
    HttpServer server(habits);
    with_server(server, [](env::Env& env) -> task::Task<void> {
      std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
      CO_ASSERT_TRUE(drive != nullptr);
      EXPECT_EQ(fact(*drive, "conditions_honoured"), 0u);
      co_await drive->close();
    });
    EXPECT_EQ(server.objects.size(), 1u) << "nothing is left of the trial";
  }
}

// A server that ignores conditions cannot be kept from carrying out what it has: until it did, the
// object is not changed.
TEST(RestLate, WithoutOrderAnObjectWaitsForWhatWasGivenUp) {
  for (const bool content_etags : {true, false}) {
    HttpServer server({.conditions = content_etags, .content_etags = content_etags});
    stall(server, "PUT", 1);
    with_server(server, [](env::Env& env) -> task::Task<void> {
      std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
      CO_ASSERT_TRUE(drive != nullptr);
      Result<void> done = co_await drive->write(Lba(0), filled(1, kObject));
      EXPECT_TRUE(!done && done.error() == Errc::kIo);
      done = co_await drive->write(Lba(0), filled(2, kObject));
      EXPECT_TRUE(!done && done.error() == Errc::kIo) << "the first one may still come";
      done = co_await drive->write_zeroes(Lba(0), kBlocks);
      EXPECT_TRUE(!done && done.error() == Errc::kIo);
      done = co_await drive->write(Lba(kBlocks), filled(2, kObject));
      EXPECT_TRUE(done) << "of another object";
      co_await let_it_land(env);
      co_await expect_first_object(*drive, 1);
      done = co_await drive->write(Lba(0), filled(3, kObject));
      EXPECT_TRUE(done);
      co_await let_it_land(env);
      co_await expect_first_object(*drive, 3);
      co_await drive->close();
    });
    EXPECT_EQ(server.objects[kObjectName].bytes, std::string(kObject, 3));
  }
}

TEST(RestLate, WithoutOrderAPutThatLandsSoonIsWaitedFor) {
  HttpServer server({.conditions = false, .etags_on_put = false});
  server.trouble = [](const ServedRequest& request) {
    return Trouble{.delay =
                       request.method == "PUT" && request.target == kObjectName ? 1200_ms : 0_s};
  };
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    for (uint8_t value = 1; value < 4; ++value) {
      const Result<void> done = co_await drive->write(Lba(0), filled(value, kObject));
      EXPECT_TRUE(done) << int{value};
    }
    co_await let_it_land(env);
    co_await expect_first_object(*drive, 3);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::rest
