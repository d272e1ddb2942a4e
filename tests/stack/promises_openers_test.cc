// SPDX-License-Identifier: Apache-2.0
// One medium that two processes open, as over a network: the first to open it is told so before it
// can harm what the second one writes. A service that keeps nothing has nothing to harm.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stack/services.h"
#include "stack/subjects.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::stack {
namespace {

using drive::Drive;

// A drive that somebody else has open too.
class Window final : public Drive {
 public:
  explicit Window(Drive& below) : below_(below) {}
  const drive::Geometry& geometry() const override { return below_.geometry(); }
  drive::Extent extent_at(Lba lba, uint64_t max) const override {
    return below_.extent_at(lba, max);
  }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(drive::DriveOp& op) override { gate_.spawn(serve(op)); }
  void cancel(drive::DriveOp&) override {}
  task::Task<void> serve(drive::DriveOp& op) {
    const Result<void> done =
        co_await below_.submit(op.request, op.data(), op.second(), op.token());
    op.complete(done);
  }

  Drive& below_;
  task::Gate gate_;
};

// Gives out windows onto one drive for each name.
class Network final : public drive::Leaves {
 public:
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    std::unique_ptr<Drive>& drive = drives_[text];
    if (drive == nullptr) {
      Leaf opened = co_await sources_.open(env, text);
      if (!opened) co_return opened;
      drive = std::move(*opened);
    }
    co_return std::make_unique<Window>(*drive);
  }
  task::Task<Leaf> open_shared(env::Env& env, std::string text) override {
    return sources_.open_shared(env, std::move(text));
  }
  std::expected<drive::FileContent, std::string> read_file(const std::string& path) override {
    return sources_.read_file(path);
  }
  // Whether there is something where no service but one that keeps a label writes now.
  task::Task<bool> has_label() {
    std::vector<std::byte> start(8192);
    bool has = false;
    for (auto& [text, drive] : drives_) {
      EXPECT_TRUE((co_await drive->read(Lba(0), start)).has_value());
      has = has || start != drive::blocks_of(0, 2);
    }
    co_return has;
  }
  task::Task<void> close() {
    for (auto& [text, drive] : drives_) co_await drive->close();
    drives_.clear();
  }

 private:
  drive::LeavesWithFiles sources_{{{"drive.key", drive::testing_key(1)}}};
  std::map<std::string, std::unique_ptr<Drive>> drives_;
};

constexpr uint64_t kFirst = 17;  // the blocks that the first opener writes, after the second came
constexpr uint64_t kStep = 5;
constexpr uint64_t kSteps = 40;
constexpr uint8_t kValue = 5;

// Writes here and there until it is told that it must not, or has done it for a while.
task::Task<Result<void>> write_until_refused(env::Env& env, Drive& drive) {
  const std::vector<std::byte> data = drive::blocks_of(kValue, 3);
  Result<void> done;
  for (uint64_t i = 0; i < 2 * kSteps && done; ++i) {
    done = co_await drive.write(Lba(kFirst + kStep * (i % kSteps)), data);
    if (done) done = co_await drive.flush();
    const Result<void> slept = co_await task::sleep_for(env, 10_ms);
    EXPECT_TRUE(slept);
  }
  co_return done;
}

// It wrote to the end: then all of that is there.
task::Task<void> expect_all_written(Drive& drive) {
  for (uint64_t i = 0; i < kSteps; ++i) {
    EXPECT_EQ(co_await drive::read_value(drive, kFirst + kStep * i), kValue) << i;
  }
}

// What it had before it was refused is as it was, and it stays refused, whatever it is asked.
task::Task<void> expect_refused(Drive& drive, const Error& why) {
  EXPECT_EQ(why, Errc::kDenied) << why.text();
  EXPECT_NE(why.text().find("another process has opened this drive"), std::string::npos)
      << why.text();
  const std::vector<std::byte> more = drive::blocks_of(kValue, 3);
  EXPECT_FALSE((co_await drive.write(Lba(3), more)).has_value());
  EXPECT_FALSE((co_await drive.write_zeroes(Lba(3), 3)).has_value());
}

// Whoever stands on media of its own process alone is refused by them.
bool is_local(const std::string& stack) {
  const drive::Service* service = drive::find_service(stack.substr(0, stack.find('(')));
  return !service->leaf_only.empty();
}

task::Task<void> open_twice(env::Env& env, std::string stack, Network& network) {
  const std::unique_ptr<Drive> first = co_await drive::must_open(env, stack, network);
  CO_ASSERT_TRUE(first != nullptr);
  co_await drive::write_value(*first, 3, 7);
  EXPECT_TRUE((co_await first->flush()).has_value());
  if (is_local(stack)) {
    EXPECT_NE(co_await drive::why_not(env, stack, network), "");
    co_return co_await first->close();
  }
  const std::unique_ptr<Drive> second = co_await drive::must_open(env, stack, network);
  CO_ASSERT_TRUE(second != nullptr);
  EXPECT_EQ(co_await drive::read_value(*second, 3), 7);
  co_await drive::write_value(*second, 3, 9, 3);
  EXPECT_TRUE((co_await second->flush()).has_value());
  const Result<void> slept = co_await task::sleep_for(env, 1_s);
  EXPECT_TRUE(slept);

  const bool keeps_something = co_await network.has_label();
  const Result<void> written = co_await write_until_refused(env, *first);
  EXPECT_EQ(!written.has_value(), keeps_something);
  if (!written) co_await expect_refused(*first, written.error());
  co_await first->close();

  co_await drive::write_value(*second, 12, 11);
  EXPECT_TRUE((co_await second->flush()).has_value());
  EXPECT_EQ(co_await drive::read_value(*second, 3), 9);
  co_await second->close();
  const std::unique_ptr<Drive> third = co_await drive::must_open(env, stack, network);
  CO_ASSERT_TRUE(third != nullptr);
  for (uint64_t block = 3; block < 6; ++block) {
    EXPECT_EQ(co_await drive::read_value(*third, block), 9);
  }
  EXPECT_EQ(co_await drive::read_value(*third, 12), 11);
  if (written) co_await expect_all_written(*third);
  co_await third->close();
}

task::Task<void> run(env::Env& env, std::string stack) {
  Network network;
  co_await open_twice(env, std::move(stack), network);
  co_await network.close();
}

class EveryServiceOpeners : public testing::TestWithParam<Subject> {};
TEST_P(EveryServiceOpeners, OfTwoOpenersTheFirstStopsAndTheSecondLosesNothing) {
  drive::run_in_sim([](env::Env& env) { return run(env, GetParam().stack); });
}
INSTANTIATE_TEST_SUITE_P(Promises, EveryServiceOpeners, testing::ValuesIn(every_service()),
                         subject_name);

}  // namespace
}  // namespace cairn::stack
