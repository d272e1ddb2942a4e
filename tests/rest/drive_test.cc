// SPDX-License-Identifier: Apache-2.0
// What each kind of request asks of the server, and what becomes of the objects.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "rest/scene.h"

namespace cairn::rest {
namespace {

using drive::Drive;
using drive::Request;

constexpr size_t kObject = 16384;
constexpr const char* kSmall = "?size=256K&object=16K&check_ms=60000";

TEST(RestDrive, SaysWhatItIs) {
  HttpServer server;
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
    CO_ASSERT_TRUE(drive != nullptr);
    const drive::Geometry& shape = drive->geometry();
    EXPECT_EQ(shape.bytes(), 256_KiB);
    EXPECT_EQ(shape.block_size, 4096u);
    EXPECT_EQ(shape.atomic_blocks, 4u);
    EXPECT_EQ(shape.discard_blocks, 4u);
    EXPECT_EQ(shape.transfer_blocks, 256u);
    EXPECT_FALSE(shape.volatile_cache);
    EXPECT_EQ(fact(*drive, "conditions_honoured"), 1u);
    co_await drive->close();
  });
}

task::Task<void> write_and_look(env::Env& env, HttpServer& server) {
  std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
  CO_ASSERT_TRUE(drive != nullptr);
  // A part of one object, a whole one, a part of the next.
  const std::vector<std::byte> data = filled(7, 2 * kObject);
  const Result<void> written = co_await drive->write(Lba(2), data);
  EXPECT_TRUE(written);
  EXPECT_EQ(server.count["PUT"], 4u + 3u)
      << "the label's two, the trial's two, then one for each object";
  EXPECT_EQ(server.objects.size(), 4u);
  EXPECT_EQ(server.objects["/v/00000000"].bytes,
            std::string(kObject / 2, '\0') + std::string(kObject / 2, 7));
  EXPECT_EQ(server.objects["/v/00000001"].bytes, std::string(kObject, 7));

  std::vector<std::byte> back(2 * kObject + 2 * 4096);
  const Result<void> read = co_await drive->read(Lba(1), back);
  EXPECT_TRUE(read);
  std::vector<std::byte> expected(4096);
  expected.insert(expected.end(), data.begin(), data.end());
  expected.resize(back.size());
  EXPECT_EQ(back, expected);
  co_await drive->close();
}

TEST(RestDrive, KeepsWhatWasWritten) {
  for (const bool odd : {false, true}) {
    HttpServer server({.conditions = !odd,
                       .ranges = !odd,
                       .etags_on_put = !odd,
                       .chunked = odd,
                       .says_continue = odd});
    with_server(server, [&server, odd](env::Env& env) -> task::Task<void> {
      if (!odd) return write_and_look(env, server);
      return [](env::Env& env) -> task::Task<void> {
        std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
        CO_ASSERT_TRUE(drive != nullptr);
        EXPECT_EQ(fact(*drive, "conditions_honoured"), 0u);
        const std::vector<std::byte> data = filled(7, 2 * kObject);
        const Result<void> written = co_await drive->write(Lba(2), data);
        EXPECT_TRUE(written);
        std::vector<std::byte> back(2 * kObject);
        const Result<void> read = co_await drive->read(Lba(2), back);
        EXPECT_TRUE(read);
        EXPECT_EQ(back, data);
        co_await drive->close();
      }(env);
    });
  }
}

TEST(RestDrive, UnderstandsBodiesThatEndWithTheConnection) {
  HttpServer server({.lengthless = true});
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
    CO_ASSERT_TRUE(drive != nullptr);
    const std::vector<std::byte> data = filled(9, 4096);
    const Result<void> written = co_await drive->write(Lba(5), data);
    EXPECT_TRUE(written);
    std::vector<std::byte> back(4096);
    const Result<void> read = co_await drive->read(Lba(5), back);
    EXPECT_TRUE(read);
    EXPECT_EQ(back, data);
    co_await drive->close();
  });
}

TEST(RestDrive, GivesWholeObjectsBack) {
  HttpServer server;
  with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
    CO_ASSERT_TRUE(drive != nullptr);
    const std::vector<std::byte> data = filled(3, 4 * kObject);
    Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_TRUE(done);
    EXPECT_EQ(server.objects.size(), 5u);
    done = co_await drive->discard(Lba(2), 12);  // half of object 0, objects 1 and 2, half of 3
    EXPECT_TRUE(done);
    EXPECT_EQ(server.objects.size(), 3u);
    EXPECT_FALSE(server.objects.contains("/v/00000001"));
    EXPECT_EQ(server.objects["/v/00000003"].bytes,
              std::string(kObject / 2, '\0') + std::string(kObject / 2, 3));
    const uint64_t puts = server.count["PUT"];
    done = co_await drive->write_zeroes(Lba(9), 2);  // of an object that is not there
    EXPECT_TRUE(done);
    EXPECT_EQ(server.count["PUT"], puts);
    const Request keep{
        .kind = Request::Kind::kWriteZeroes, .keep_space = true, .lba = Lba(4), .blocks = 4};
    done = co_await drive->submit(keep, {});
    EXPECT_TRUE(done);
    EXPECT_EQ(server.objects["/v/00000001"].bytes, std::string(kObject, '\0'));
    co_await drive->close();
  });
}

TEST(RestDrive, EndsInsideItsLastObject) {
  HttpServer server;
  with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, "?size=20K&object=16K");
    CO_ASSERT_TRUE(drive != nullptr);
    const std::vector<std::byte> data = filled(3, 4096);
    Result<void> done = co_await drive->write(Lba(4), data);
    EXPECT_TRUE(done);
    EXPECT_EQ(server.objects["/v/00000001"].bytes.size(), 4096u);
    done = co_await drive->compare(Lba(4), data);
    EXPECT_TRUE(done);
    done = co_await drive->discard(Lba(0), 5);
    EXPECT_TRUE(done);
    EXPECT_EQ(server.objects.size(), 1u) << "only the label";
    co_await drive->close();
  });
}

TEST(RestDrive, ComparesBeforeItWritesAnything) {
  HttpServer server;
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
    CO_ASSERT_TRUE(drive != nullptr);
    std::vector<std::byte> old = filled(0, 2 * kObject);
    std::vector<std::byte> next = filled(5, 2 * kObject);
    const MutableBytes with(old);
    const MutableBytes second(next);
    const Request request{.kind = Request::Kind::kCompareAndWrite, .lba = Lba(2), .blocks = 8};
    Result<void> done = co_await drive->submit(request, {&with, 1}, {&second, 1});
    EXPECT_TRUE(done);
    done = co_await drive->compare(Lba(2), next);
    EXPECT_TRUE(done);
    std::ranges::fill(old, std::byte{5});
    old.back() = std::byte{4};  // differs in its last byte
    std::ranges::fill(next, std::byte{6});
    done = co_await drive->submit(request, {&with, 1}, {&second, 1});
    EXPECT_TRUE(!done && done.error() == Errc::kMismatch);
    std::vector<std::byte> back(4096);
    done = co_await drive->read(Lba(2), back);
    EXPECT_TRUE(done);
    EXPECT_EQ(back, filled(5, 4096));
    co_await drive->close();
  });
}

TEST(RestDrive, KeepsItsConnections) {
  HttpServer server;
  with_server(server, [](env::Env& env) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kSmall);
    CO_ASSERT_TRUE(drive != nullptr);
    const std::vector<std::byte> data = filled(1, 4096);
    for (uint64_t i = 0; i < 20; ++i) {
      const Result<void> done = co_await drive->write(Lba(i), data);
      EXPECT_TRUE(done);
    }
    co_await drive->close();
  });
  EXPECT_EQ(server.connections, 1u);
}

}  // namespace
}  // namespace cairn::rest
