// SPDX-License-Identifier: Apache-2.0
// One medium that is opened twice, as over a network: the first to open it notices the second.
#include <gtest/gtest.h>

#include <map>

#include "drive/files_testing.h"
#include "drive/service_testing.h"
#include "drive/services.h"
#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::drive {
namespace {

// A drive that somebody else has open too.
class Window final : public Drive {
 public:
  explicit Window(Drive& below) : below_(below) {}
  const Geometry& geometry() const override { return below_.geometry(); }
  Extent extent_at(Lba lba, uint64_t most) const override { return below_.extent_at(lba, most); }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override { gate_.spawn(serve(op)); }
  void cancel(DriveOp&) override {}
  task::Task<void> serve(DriveOp& op) {
    const Result<void> done =
        co_await below_.submit(op.request, op.data(), op.second(), op.token());
    op.complete(done);
  }

  Drive& below_;
  task::Gate gate_;
};

// Gives out windows onto one drive for each name.
class Network final : public Leaves {
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
  std::expected<FileContent, std::string> read_file(const std::string&) override {
    return FileContent(as_bytes(key_));
  }
  task::Task<void> close() {
    for (auto& [text, drive] : drives_) co_await drive->close();
    drives_.clear();
  }

 private:
  SourceLeaves sources_;
  std::map<std::string, std::unique_ptr<Drive>> drives_;
  const std::string key_ = testing_key(1);
};

// Writes, here and there but not to the first blocks, until it is told that it must not.
task::Task<Result<void>> write_until_refused(env::Env& env, Drive& drive) {
  Result<void> done;
  for (int i = 0; i < 400 && done; ++i) {
    const std::vector<std::byte> data = blocks_of(5, 3);
    done = co_await drive.write(Lba(17 + 5 * static_cast<uint64_t>(i % 40)), data);
    if (done) done = co_await drive.flush();
    const Result<void> slept = co_await task::sleep_for(env, 10_ms);
    EXPECT_TRUE(slept);
  }
  co_return done;
}

task::Task<void> open_twice(env::Env& env, std::string stack) {
  Network network;
  const std::unique_ptr<Drive> first = co_await must_open(env, stack, network);
  CO_ASSERT_TRUE(first != nullptr);
  co_await write_value(*first, 3, 7);
  EXPECT_TRUE((co_await first->flush()).has_value());
  const std::unique_ptr<Drive> second = co_await must_open(env, stack, network);
  CO_ASSERT_TRUE(second != nullptr);
  EXPECT_EQ(co_await read_value(*second, 3), 7) << stack;
  co_await write_value(*second, 3, 9);
  EXPECT_TRUE((co_await second->flush()).has_value());

  const Result<void> refused = co_await write_until_refused(env, *first);
  CO_ASSERT_TRUE(!refused.has_value());
  EXPECT_NE(refused.error().text().find("another process has opened this drive"), std::string::npos)
      << stack << ": " << refused.error().text();
  // And stays so, whatever it is asked.
  const std::vector<std::byte> more = blocks_of(5, 3);
  Result<void> again = co_await first->write(Lba(17), more);
  if (again) again = co_await first->flush();
  EXPECT_FALSE(again.has_value()) << stack;
  co_await first->close();

  // The other one has lost nothing by it.
  co_await write_value(*second, 4, 11);
  EXPECT_TRUE((co_await second->flush()).has_value());
  EXPECT_EQ(co_await read_value(*second, 3), 9);
  co_await second->close();
  const std::unique_ptr<Drive> third = co_await must_open(env, stack, network);
  CO_ASSERT_TRUE(third != nullptr);
  EXPECT_EQ(co_await read_value(*third, 3), 9) << stack;
  EXPECT_EQ(co_await read_value(*third, 4), 11) << stack;
  co_await third->close();
  co_await network.close();
}

class TwoOpeners : public testing::TestWithParam<const char*> {};

TEST_P(TwoOpeners, TheFirstStopsAndTheSecondLosesNothing) {
  run_in_sim([](env::Env& env) { return open_twice(env, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Services, TwoOpeners,
                         testing::Values("atomic(file:d,size=4M, unit=64K, log=64K)",
                                         "checksum(file:d,size=4M)", "compress(file:d,size=4M)",
                                         "dedup(file:d,size=4M)",
                                         "mirror(file:a,size=4M, file:b,size=4M)",
                                         "parity(file:a,size=4M, file:b,size=4M, file:c,size=4M)",
                                         "snapshot(file:d,size=4M)",
                                         "spillover(file:a,size=2M, file:b,size=4M)",
                                         "thin(file:d,size=4M)",
                                         "cache(file:slow,size=4M, file:fast,size=4M, mode=back)"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           const std::string_view text = info.param;
                           return std::string(text.substr(0, text.find('(')));
                         });

}  // namespace
}  // namespace cairn::drive
