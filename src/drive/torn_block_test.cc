// SPDX-License-Identifier: Apache-2.0
// Disks whose own blocks are smaller than those of the drives on them: power tears a block inside.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "stack/services.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kDiskBlock = 512;
constexpr int kLives = 60;

std::string stack_of(const Service& service) {
  int files = 0;
  return example_over(service, [&] { return fmt::format("file:d{},size=4M", files++); });
}

// Writes here and there for as long as the power lasts.
task::Task<void> live(env::Env& env, std::string stack, std::string& why) {
  LeavesWithFiles leaves({{"drive.key", testing_key(1)}});
  Opened drive = co_await open_stack(env, stack, leaves);
  why = drive ? "" : drive.error().text;
  if (!drive) co_return;
  const uint64_t blocks = (*drive)->geometry().blocks;
  while (!env.stop_token().requested()) {
    const std::vector<std::byte> data =
        blocks_of(static_cast<uint8_t>(env.rng().below(256)), 1 + env.rng().below(4));
    const Lba at(env.rng().below(blocks - 4));
    const Request request{.kind = Request::Kind::kWrite,
                          .durable = env.rng().below(2) == 0,
                          .lba = at,
                          .blocks = data.size() / 4096};
    const MutableBytes piece(const_cast<std::byte*>(data.data()), data.size());
    const Result<void> done = co_await (*drive)->submit(request, {&piece, 1});
    if (!done && done.error() != Errc::kCancelled) why = done.error().text();
    if (!done) break;
  }
  co_await (*drive)->close();
}

class TornBlock : public testing::TestWithParam<const Service*> {};

// What a service keeps for itself is whole whatever power leaves of it; data is for others to
// judge.
TEST_P(TornBlock, NeverKeepsADriveFromOpening) {
  if (!GetParam()->leaf_only.empty()) GTEST_SKIP() << "modelled drives have blocks of their own";
  const std::string stack = stack_of(*GetParam());
  sim::ClusterOptions options{.seed = 7};
  options.disk.block_size = kDiskBlock;
  sim::Cluster cluster(options);
  sim::Node& node = cluster.node("host");
  Rng rng(7);
  std::string why;
  for (int life = 0; life < kLives && why.empty(); ++life) {
    node.start([&](env::Env& env) { return live(env, stack, why); });
    const Duration time{static_cast<int64_t>(rng.between(1, 20'000)) * 1'000};
    cluster.run_for(time);
    const std::string before_crash = why;  // what is stopped by it says so
    if (node.is_running()) node.crash();
    why = before_crash;
    EXPECT_EQ(why, "") << stack << ", life " << life;
  }
}

INSTANTIATE_TEST_SUITE_P(Services, TornBlock, testing::ValuesIn(services()),
                         [](const testing::TestParamInfo<const Service*>& info) {
                           return std::string(info.param->name);
                         });

}  // namespace
}  // namespace cairn::drive
