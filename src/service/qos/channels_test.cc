// SPDX-License-Identifier: Apache-2.0
#include "service/qos/channels.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "drive/modelled_drive.h"
#include "env/call.h"
#include "model/flash/inside.h"
#include "stack/live_stack.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "testing/drive/modelled.h"
#include "testing/sim_test.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

using task::Task;

flash::Parameters four_channels() {
  flash::Parameters p = small_ssd();
  p.channels = 4;
  p.chips_per_channel = 2;
  p.ideal_mapping = true;  // the table of pages is the drive's, and lies on all its channels
  return p;
}

// Leaves whose modelled drives are of these parameters, and a look into the last that was shared.
class FlashLeaves final : public SourceLeaves {
 public:
  explicit FlashLeaves(const flash::Parameters& parameters = four_channels())
      : SourceLeaves(
            [flash = std::make_shared<const flash::Parameters>(parameters)](std::string_view text) {
              std::expected<Spec, std::string> spec = Spec::parse(text);
              if (spec) spec->flash = flash;
              return spec;
            }) {}
  Task<Leaf> open_shared(env::Env& env, std::string text) override {
    Leaf leaf = co_await SourceLeaves::open_shared(env, std::move(text));
    if (leaf) medium_ = &dynamic_cast<const ModelledDrive&>(**leaf).medium();
    co_return leaf;
  }
  const ModelledMedium& medium() const { return *medium_; }

 private:
  const ModelledMedium* medium_ = nullptr;
};

std::string part(uint32_t first, uint32_t count) {
  return fmt::format("channels(flash:profile=p,file=d,size=8M, first={}, count={})", first, count);
}

Task<void> write_all(Drive& drive, uint8_t value) {
  constexpr uint64_t kAtOnce = 64;
  const std::vector<std::byte> data = blocks_of(value, kAtOnce);
  for (uint64_t at = 0; at < drive.geometry().blocks; at += kAtOnce) {
    const Result<void> done = co_await drive.write(Lba(at), data);
    EXPECT_TRUE(done);
  }
}
Task<void> expect_all(Drive& drive, uint8_t value) {
  constexpr uint64_t kAtOnce = 64;
  const std::vector<std::byte> data = blocks_of(value, kAtOnce);
  std::vector<std::byte> back(data.size());
  for (uint64_t at = 0; at < drive.geometry().blocks; at += kAtOnce) {
    const Result<void> done = co_await drive.read(Lba(at), back);
    EXPECT_TRUE(done && back == data) << at;
  }
}

SIM_TEST(Channels, TenantsHaveTheirShareAndOnlyThat) {
  FlashLeaves leaves;
  auto low = co_await must_open(env, part(0, 3), leaves);
  auto high = co_await must_open(env, part(3, 1), leaves);
  CO_ASSERT_TRUE(low != nullptr && high != nullptr);
  EXPECT_EQ(low->geometry().bytes(), 6_MiB);
  EXPECT_EQ(high->geometry().bytes(), 2_MiB);
  co_await write_all(*low, 1);
  co_await write_all(*high, 2);
  co_await expect_all(*low, 1);
  co_await expect_all(*high, 2);
  co_await low->close();
  co_await high->close();
  low.reset();
  high.reset();
  const std::string whole = co_await why_not(env, "flash:profile=p,file=d,size=8M", leaves);
  EXPECT_EQ(whole, "") << "the last one lets go of the drive";
}

Task<void> write_on_two_channels(env::Env& env, flash::Spread spread) {
  flash::Parameters parameters = four_channels();
  parameters.spread = spread;
  FlashLeaves leaves(parameters);
  auto drive = co_await must_open(env, part(1, 2), leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  co_await write_all(*drive, 7);
  const flash::Inside inside =
      flash::look_inside(leaves.medium().model(), leaves.medium().model_now());
  EXPECT_EQ(inside.channels_busy[0], 0) << flash::text(spread);
  EXPECT_GT(inside.channels_busy[1], 0) << flash::text(spread);
  EXPECT_GT(inside.channels_busy[2], 0) << flash::text(spread);
  EXPECT_EQ(inside.channels_busy[3], 0) << flash::text(spread);
  co_await drive->close();
}

TEST(Channels, OnlyTheTenantsOwnWorkInWhateverOrderPagesAreSpread) {
  for (const char* letters : {"CWDP", "WCDP", "PDWC", "DPCW"}) {
    const flash::Spread spread = flash::parse_spread(letters).value();
    run_in_sim([spread](env::Env& env) { return write_on_two_channels(env, spread); });
  }
}

// A tenant that reads at a steady rate, and perhaps one that writes without pause.
struct Tenancy {
  std::string reader;
  std::string writer;  // empty: none; the same as the reader's: on its very drive
  std::vector<Duration> took;
};

Task<void> write_without_pause(Drive& drive, const bool& is_over) {
  Rng rng(2);
  const std::vector<std::byte> data = blocks_of(9, 1);
  while (!is_over) {
    const Result<void> done = co_await drive.write(Lba(rng.below(drive.geometry().blocks)), data);
    EXPECT_TRUE(done);
  }
}

Task<void> read_beside(env::Env& env, Tenancy& tenancy) {
  FlashLeaves leaves;
  auto drive = co_await must_open(env, tenancy.reader, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  std::unique_ptr<Drive> other;
  const bool is_same = tenancy.writer == tenancy.reader;
  if (!is_same && !tenancy.writer.empty()) {
    other = co_await must_open(env, tenancy.writer, leaves);
    CO_ASSERT_TRUE(other != nullptr);
  }
  Drive* neighbour = is_same ? drive.get() : other.get();
  bool is_over = false;
  task::Gate writers;
  for (int i = 0; i < 4 && neighbour != nullptr; ++i) {
    writers.spawn(write_without_pause(*neighbour, is_over));
  }
  Rng rng(1);
  std::vector<std::byte> into(4096);
  for (int i = 0; i < 2000; ++i) {
    const Time start = env.now();
    const Result<void> read = co_await drive->read(Lba(rng.below(drive->geometry().blocks)), into);
    EXPECT_TRUE(read);
    tenancy.took.push_back(env.now() - start);
    const Result<void> slept = co_await task::sleep_until(env, start + 1_ms);
    EXPECT_TRUE(slept);
  }
  is_over = true;
  co_await writers.close();
  co_await drive->close();
  if (other != nullptr) co_await other->close();
}

int64_t p99_ns(const std::string& reader, const std::string& writer) {
  sim::ClusterOptions options;
  options.wake_delay_max = Duration{0};
  sim::Cluster cluster(options);
  Tenancy tenancy{.reader = reader, .writer = writer, .took = {}};
  run_in_sim(cluster, [&tenancy](env::Env& env) { return read_beside(env, tenancy); });
  std::ranges::sort(tenancy.took, {}, &Duration::ns);
  return tenancy.took.at(tenancy.took.size() * 99 / 100).ns;
}

TEST(Channels, ANoisyNeighbourOnOtherChannelsIsNotHeard) {
  const std::string whole = "flash:profile=p,size=8M";  // in memory: only the model takes time
  const std::string low = fmt::format("channels({}, first=0, count=2)", whole);
  const std::string high = fmt::format("channels({}, first=2, count=2)", whole);
  const int64_t solo = p99_ns(low, "");
  EXPECT_EQ(p99_ns(low, high), solo);
  EXPECT_EQ(p99_ns(whole, ""), solo);
  EXPECT_GT(p99_ns(whole, whole), 3 * solo) << "all channels serve both";
}

SIM_TEST(Channels, SaysWhyItDoesNotOpen) {
  FlashLeaves leaves;
  auto low = co_await must_open(env, part(0, 2), leaves);
  CO_ASSERT_TRUE(low != nullptr);
  const std::pair<std::string, const char*> cases[] = {
      {part(1, 2), "another has some of these channels"},
      {part(3, 2), "go past the drive's channels, of which it has: invalid (4)"},
      {part(64, 1), "first is 0 to 63"},
      {part(2, 0), "count is 1 to 64"},
      {"channels(flash:profile=p,size=8M)", "channels lacks count"},
      {"channels(mem:size=8M, count=1)", "stands right on a flash: drive"},
      {"channels(file:e,size=8M, count=1)", "stands right on a flash: drive"},
      {"channels(slice(flash:profile=p,size=8M), count=1)", "stands right on a flash: drive"},
      {"channels(flash:profile=p,size=8M,block=8192, count=1)", "blocks must divide a flash page"},
      {fmt::format("concat({}, flash:profile=p,file=d,size=8M)", part(2, 1)),
       "as a whole and in parts"},
      {fmt::format("concat(flash:profile=p,file=d,size=8M, {})", part(2, 1)),
       "as a whole and in parts"},
      {fmt::format("concat({}, {})", part(2, 1), part(2, 1)), "another has some of these"},
  };
  for (const auto& [stack, message] : cases) {
    const std::string said = co_await why_not(env, stack, leaves);
    EXPECT_NE(said.find(message), std::string::npos) << stack << ": " << said;
  }
  flash::Parameters dynamic = four_channels();
  dynamic.dynamic_spread = true;
  FlashLeaves others(dynamic);
  const std::string said =
      co_await why_not(env, "channels(flash:profile=p,size=8M, count=1)", others);
  EXPECT_NE(said.find("whichever channel is least busy"), std::string::npos) << said;
  co_await write_all(*low, 3);
  co_await low->close();
}

SIM_TEST(Channels, ComeAndGoWhileOthersUseTheDrive) {
  FlashLeaves leaves;
  LiveOpened live = co_await open_live_stack(
      env, Stack::parse(fmt::format("mirror({}, {})", part(0, 1), part(1, 1))).value(), leaves);
  CO_ASSERT_TRUE(live.has_value());
  auto other = co_await must_open(env, part(2, 2), leaves);
  CO_ASSERT_TRUE(other != nullptr);
  LiveStack& stack = **live;
  const std::vector<std::byte> data = blocks_of(5, 8);
  Result<void> done = co_await stack.write(Lba(3), data);
  EXPECT_TRUE(done);
  LiveStack::Edited edited = co_await stack.edit(
      fmt::format("limit(mirror(priority({}), {}), iops=9000)", part(0, 1), part(1, 1)));
  EXPECT_TRUE(edited) << edited.error().text;
  edited = co_await stack.edit(fmt::format("mirror({}, {})", part(0, 1), part(2, 1)));
  EXPECT_FALSE(edited);
  std::vector<std::byte> back(data.size());
  done = co_await stack.read(Lba(3), back);
  EXPECT_TRUE(done && back == data) << "the old stack goes on";
  const LayerInfo info = co_await stack.layers();
  EXPECT_EQ(info.below[0].below[1].facts[0].second, 1u) << "first_channel";
  co_await write_all(*other, 6);
  co_await stack.close();
  live->reset();
  co_await expect_all(*other, 6);
  co_await other->close();
}

Task<bool> is_share_of(env::Env& there, SharedSources& shared, const Spec& spec,
                       const ModelledMedium* medium) {
  Result<std::unique_ptr<Source>> share = co_await shared.make(there, spec);
  co_return share && (*share)->modelled() == medium;
}

Task<void> share_across_cores(env::Env& env, size_t& left) {
  SharedSources shared(env);
  Spec spec = Spec::parse("flash:profile=p,file=d,size=8M").value();
  spec.flash = std::make_shared<const flash::Parameters>(four_channels());
  {
    Result<std::unique_ptr<Source>> here = co_await shared.make(env, spec);
    CO_ASSERT_TRUE(here.has_value());
    const ModelledMedium* medium = (*here)->modelled();
    const bool same = co_await env::call_on(
        env, CoreId(1), [&](env::Env& there) { return is_share_of(there, shared, spec, medium); });
    EXPECT_TRUE(same);
    EXPECT_EQ(shared.media(), 1u);
    here = co_await env::call_on(env, CoreId(1),
                                 [&](env::Env& there) { return shared.make(there, spec); });
    CO_ASSERT_TRUE(here.has_value());
    EXPECT_EQ(shared.media(), 1u) << "the first share is gone, and the third keeps it";
    co_await env::call_on(env, CoreId(1), [&](env::Env&) { here->reset(); });
  }
  left = shared.media();
}

TEST(SharedSources, LastShareOnWhateverCoreLetsGo) {
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host", {.cores = 2});
  size_t left = 99;
  node.start([&left](env::Env& env) { return share_across_cores(env, left); });
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 10_s)) << cluster.report();
  EXPECT_EQ(left, 0u);
}

}  // namespace
}  // namespace cairn::drive
