// SPDX-License-Identifier: Apache-2.0
// A folder that is gone, or another drive's: what is absent there is no zeroes.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rest/scene.h"

namespace cairn::rest {
namespace {

using drive::Drive;

constexpr size_t kObject = 16384;
constexpr const char* kPlace = "?size=1M&object=16K";
constexpr const char* kLabel = "/v/label";

bool is_lost(const Result<void>& done) { return !done && done.error() == Errc::kIo; }

TEST(RestGone, AFolderThatIsGoneDoesNotReadAsZeroes) {
  HttpServer server;
  with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    const std::vector<std::byte> data = filled(1, kObject);
    Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_TRUE(done);
    const std::map<std::string, HttpServer::Object> folder = server.objects;
    server.objects.clear();
    std::vector<std::byte> back(4096);
    done = co_await drive->read(Lba(0), back);
    EXPECT_TRUE(is_lost(done));
    done = co_await drive->read(Lba(100), back);
    EXPECT_TRUE(is_lost(done)) << "nor where nothing was written";
    done = co_await drive->compare(Lba(100), filled(0, 4096));
    EXPECT_TRUE(is_lost(done));
    done = co_await drive->write(Lba(1), filled(2, 4096));
    EXPECT_TRUE(is_lost(done)) << "the other blocks of the object are not known";
    EXPECT_TRUE(server.objects.empty());
    server.objects = folder;
    std::vector<std::byte> all(kObject);
    done = co_await drive->read(Lba(0), all);
    EXPECT_TRUE(done) << "it came back";
    EXPECT_EQ(all, data);
    co_await drive->close();
  });
}

TEST(RestGone, AnotherDrivesFolderDoesNotReadAsZeroes) {
  HttpServer server;
  with_server(server, [](env::Env& env, HttpServer& server) -> task::Task<void> {
    std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(drive != nullptr);
    server.objects.clear();
    std::unique_ptr<Drive> other = co_await must_open(env, kPlace);
    CO_ASSERT_TRUE(other != nullptr);
    std::vector<std::byte> back(4096);
    Result<void> done = co_await drive->read(Lba(0), back);
    EXPECT_TRUE(is_lost(done));
    done = co_await other->read(Lba(0), back);
    EXPECT_TRUE(done);
    server.objects[kLabel].bytes = "a page that somebody wrote";
    done = co_await other->read(Lba(0), back);
    EXPECT_TRUE(!done && done.error() == Errc::kCorrupt);
    co_await drive->close();
    co_await other->close();
  });
}

// One read of many objects, while `labels` counts looks at the label.
task::Task<void> read_once(env::Env& env, uint64_t& labels) {
  std::unique_ptr<Drive> drive = co_await must_open(env, kPlace);
  CO_ASSERT_TRUE(drive != nullptr);
  labels = 0;
  std::vector<std::byte> back(1_MiB);
  const Result<void> done = co_await drive->read(Lba(0), back);
  EXPECT_TRUE(done);
  EXPECT_EQ(back, filled(0, 1_MiB));
  EXPECT_GE(labels, 2u) << "two rounds of objects";
  EXPECT_LT(labels, 32u) << "of 64 objects";
  co_await drive->close();
}

TEST(RestGone, OneLookAtTheLabelAnswersAllThatWait) {
  HttpServer server;
  uint64_t labels = 0;
  server.trouble = [&labels](const ServedRequest& request) {
    if (request.target == kLabel && request.method == "GET") ++labels;
    return Trouble();
  };
  with_server(server, [&labels](env::Env& env) { return read_once(env, labels); });
}

}  // namespace
}  // namespace cairn::rest
