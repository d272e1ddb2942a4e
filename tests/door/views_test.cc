// SPDX-License-Identifier: Apache-2.0
// Versions and clones of a drive as exports that are there because a client names them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "door/door.h"
#include "door/nbd/found_exports.h"
#include "drive/shared_drive.h"
#include "stack/stack.h"
#include "task/sync.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdViews);

constexpr uint32_t kBlock = 4096;

// "s@VIEW" are the views of one snapshot drive.
class Views final : public door::nbd::ExportFinder {
 public:
  Views(env::Env& env, std::unique_ptr<drive::Drive> drive) : env_(env), drive(std::move(drive)) {}

  Task<Result<door::ExportOptions>> find(std::string name) override {
    if (!name.starts_with("s@")) co_return fail(Errc::kNotFound, "no export of that name");
    Result<std::unique_ptr<drive::Drive>> view = drive->open_view(name.substr(2));
    if (!view) co_return fail(view.error());
    ++opened;
    open_.push_back(std::make_unique<drive::SharedDrive>(env_, std::move(*view)));
    co_return door::ExportOptions{.name = name,
                                  .description = "a view",
                                  .read_only = !name.starts_with("s@clone:"),
                                  .source = open_.back().get()};
  }
  Task<void> give_back(drive::Source& source) override {
    co_await source.close(env_);
    std::erase_if(open_, [&](const auto& one) { return one.get() == &source; });
    if (open_.empty()) all_back.set();
  }

 private:
  env::Env& env_;
  std::vector<std::unique_ptr<drive::SharedDrive>> open_;

 public:
  std::unique_ptr<drive::Drive> drive;
  int opened = 0;
  task::Event all_back;
};

Task<void> fill(drive::Drive& drive, uint8_t value) {
  const Content data(16 * kBlock, std::byte{value});
  const Result<void> done = co_await drive.write(Lba(0), data);
  must(done);
}

Task<std::string> tell(drive::Drive& drive, std::vector<std::string> args) {
  const auto answer = co_await drive.tell(std::move(args));
  co_return answer ? *answer : "refused: " + answer.error();
}

Task<void> everybody_left(Views& views) {
  const Result<void> left = co_await views.all_back.wait();
  must(left);
}

// The byte that all of the first blocks hold.
Task<int> look(NbdClient& client) {
  const Result<Answer> answer = co_await client.call({Command::kRead, 0, 16 * kBlock, 0});
  const Content& data = must(answer).data;
  const bool is_one = data == Content(data.size(), data[0]);
  co_return is_one ? std::to_integer<int>(data[0]) : -1;
}

Task<uint32_t> put(NbdClient& client, uint8_t value) {
  const Content data(16 * kBlock, std::byte{value});
  const Result<Answer> answer = co_await client.call({Command::kWrite, 0, 16 * kBlock, 0}, data);
  co_return must(answer).error;
}

WORLD_TEST(NbdViews, VersionsAndClonesAreExportsByName) {
  drive::SourceLeaves leaves;
  drive::Opened opened = co_await drive::open_stack(env, "snapshot(mem:size=4M)", leaves);
  CHECK(opened.has_value());
  Views views(env, std::move(*opened));
  drive::Drive& drive = *views.drive;
  co_await fill(drive, 1);
  EXPECT_EQ(co_await tell(drive, {"take"}), "version 1");
  co_await fill(drive, 2);
  EXPECT_EQ(co_await tell(drive, {"clone", "1", "c"}), "clone:c of version 1");

  door::nbd::NbdOptions options;
  options.finder = &views;
  Door door(env, options);
  co_await door.open(scene.any_port());
  {
    // Each on a core of its own, where there are several.
    NbdClient first(env);
    NbdClient second(env);
    const Told told = co_await sure(first.arrive(door.address, "s@1", true));
    EXPECT_EQ(told.size, drive.geometry().bytes());
    EXPECT_NE(told.flags & door::nbd::kReadOnly, 0);
    co_await sure(second.arrive(door.address, "s@1", true));
    EXPECT_EQ(views.opened, 1);
    EXPECT_EQ(co_await look(first), 1);
    EXPECT_EQ(co_await look(second), 1);
    EXPECT_NE(co_await put(first, 9), 0u);
    co_await fill(drive, 3);
    EXPECT_EQ(co_await look(first), 1);
    const std::string refused = co_await tell(drive, {"remove", "1"});
    EXPECT_NE(refused.find("in use"), std::string::npos) << refused;
  }
  co_await everybody_left(views);
  views.all_back.reset();
  {
    NbdClient first(env);
    NbdClient second(env);
    const Told told = co_await sure(first.arrive(door.address, "s@clone:c", true));
    EXPECT_EQ(told.flags & door::nbd::kReadOnly, 0);
    co_await sure(second.arrive(door.address, "s@clone:c", true));
    EXPECT_EQ(co_await put(first, 7), 0u);
    EXPECT_EQ(co_await look(second), 7);
    const Content half(kBlock / 2, std::byte{8});
    const Result<Answer> part =
        co_await second.call({Command::kWrite, kBlock / 2, kBlock / 2, 0}, half);
    EXPECT_EQ(must(part).error, 0u);
  }
  co_await everybody_left(views);
  EXPECT_EQ(co_await tell(drive, {"remove", "clone:c"}), "removed clone:c");
  EXPECT_EQ(co_await tell(drive, {"remove", "1"}), "removed version 1");
  NbdClient late(env);
  const Result<Told> gone = co_await late.arrive(door.address, "s@1", true);
  EXPECT_FALSE(gone.has_value());
  co_await door.close();
  co_await drive.close();
}

// Who sees the end of a connection can remove what was used by it.
WORLD_TEST(NbdViews, AViewIsFreeWhenTheConnectionEnds) {
  drive::SourceLeaves leaves;
  drive::Opened opened = co_await drive::open_stack(env, "snapshot(mem:size=4M)", leaves);
  CHECK(opened.has_value());
  Views views(env, std::move(*opened));
  drive::Drive& drive = *views.drive;
  co_await fill(drive, 1);
  door::nbd::NbdOptions options;
  options.finder = &views;
  Door door(env, options);
  co_await door.open(scene.any_port());
  for (int version = 1; version <= 8; ++version) {
    const std::string name = std::to_string(version);
    EXPECT_EQ(co_await tell(drive, {"take"}), "version " + name);
    NbdClient client(env);
    co_await sure(client.arrive(door.address, "s@" + name, true));
    const Result<uint64_t> asked = co_await client.ask({.command = Command::kDisconnect});
    must(asked);
    const Result<Content> rest = co_await client.receive(1);
    EXPECT_FALSE(rest.has_value()) << "the server ends the connection";
    EXPECT_EQ(co_await tell(drive, {"remove", name}), "removed version " + name);
  }
  co_await door.close();
  co_await drive.close();
}

// A client that looks around enters and leaves; what it chose in the end stays.
WORLD_TEST(NbdViews, WhoLooksAtManyUsesOne) {
  drive::SourceLeaves leaves;
  drive::Opened opened = co_await drive::open_stack(env, "snapshot(mem:size=4M)", leaves);
  CHECK(opened.has_value());
  Views views(env, std::move(*opened));
  drive::Drive& drive = *views.drive;
  for (uint8_t version = 1; version <= 3; ++version) {
    co_await fill(drive, version);
    EXPECT_EQ(co_await tell(drive, {"take"}), "version " + std::to_string(version));
  }
  door::nbd::NbdOptions options;
  options.finder = &views;
  Door door(env, options);
  co_await door.open(scene.any_port());
  NbdClient client(env);
  co_await sure(client.dial(door.address));
  co_await sure(client.greet());
  co_await sure(client.structured());
  for (const char* name : {"s@1", "s@3", "s@3", "a", "s@2"}) {
    co_await sure(client.go(name, door::nbd::Option::kInfo));
  }
  const Result<Told> none = co_await client.go("s@4", door::nbd::Option::kInfo);
  EXPECT_FALSE(none.has_value());
  co_await sure(client.go("s@2"));
  EXPECT_EQ(co_await look(client), 2);
  EXPECT_EQ(co_await tell(drive, {"remove", "1"}), "removed version 1");
  EXPECT_EQ(co_await tell(drive, {"remove", "3"}), "removed version 3");
  client.hang_up();
  co_await door.close();
  EXPECT_EQ(co_await tell(drive, {"remove", "2"}), "removed version 2");
  co_await drive.close();
}

}  // namespace
}  // namespace cairn::door_tests
