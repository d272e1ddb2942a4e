// SPDX-License-Identifier: Apache-2.0
// Modelled SSDs with a volatile cache whose machine loses power, and drives that were used before.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "drive/modelled_medium.h"
#include "drive/source.h"
#include "env/call.h"
#include "task/when_all.h"
#include "testing/drive/modelled.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kCores = 3;
constexpr uint64_t kBlocksPerCore = 40;
constexpr size_t kBlock = 4096;

flash::Parameters volatile_ssd() {
  flash::Parameters p = small_ssd();
  p.streams[0].cache = flash::CacheMode::kWrite;
  p.cache_bytes = 64 * 4096;
  p.cache_protected = false;
  return p;
}

Spec spec_of(std::string_view text, const flash::Parameters& parameters) {
  Spec spec = Spec::parse(text).value();
  spec.flash = std::make_shared<const flash::Parameters>(parameters);
  return spec;
}

// What the host knows of one block. Contents are the version, in every sector.
struct Known {
  uint64_t asked = 0;
  uint64_t acknowledged = 0;
  uint64_t durable = 0;
};

std::vector<std::byte> contents(uint64_t version) {
  std::vector<std::byte> block(kBlock);
  for (size_t at = 0; at < kBlock; at += sizeof version) {
    std::memcpy(block.data() + at, &version, sizeof version);
  }
  return block;
}

// Writes blocks of its own again and again, some durably, and flushes now and then.
task::Task<void> write_for_ever(env::Env& env, Source& source, std::vector<Known>& known) {
  std::unique_ptr<Drive> drive = source.open(env).value();
  EXPECT_TRUE(drive->geometry().volatile_cache);
  const uint64_t first = env.core().value() * kBlocksPerCore;
  for (uint64_t version = 1;; ++version) {
    if (env.rng().bernoulli(0.1)) {
      const std::vector<Known> before = known;
      const Result<void> flushed = co_await drive->flush();
      if (!flushed) break;
      for (uint64_t i = first; i < first + kBlocksPerCore; ++i) {
        known[i].durable = std::max(known[i].durable, before[i].acknowledged);
      }
    }
    const uint64_t index = first + env.rng().below(kBlocksPerCore);
    const bool durable = env.rng().bernoulli(0.1);
    std::vector<std::byte> block = contents(version);
    const MutableBytes piece(block);
    known[index].asked = version;
    const Request request{
        .kind = Request::Kind::kWrite, .durable = durable, .lba = Lba(index), .blocks = 1};
    const Result<void> done = co_await drive->submit(request, std::span(&piece, 1));
    if (!done) break;
    known[index].acknowledged = version;
    if (durable) known[index].durable = version;
  }
  co_await drive->close();
}

task::Task<void> write_on_all_cores(env::Env& env, std::vector<Known>& known) {
  std::unique_ptr<Source> source =
      Source::make(env, spec_of("flash:profile=small,file=disk,size=4M", volatile_ssd())).value();
  std::vector<task::Task<void>> cores;
  for (uint32_t core = 0; core < kCores; ++core) {
    cores.push_back(env::call_on(env, CoreId(core), [&source, &known](env::Env& there) {
      return write_for_ever(there, *source, known);
    }));
  }
  co_await task::when_all(std::move(cores));
}

task::Task<void> read_all(env::Env& env, std::vector<uint64_t>& versions, bool& whole) {
  std::unique_ptr<Source> source =
      Source::make(env, spec_of("flash:profile=small,file=disk,size=4M", volatile_ssd())).value();
  std::unique_ptr<Drive> drive = source->open(env).value();
  for (uint64_t index = 0; index < kCores * kBlocksPerCore; ++index) {
    std::vector<std::byte> block(kBlock);
    const Result<void> done = co_await drive->read(Lba(index), block);
    EXPECT_TRUE(done);
    uint64_t version = 0;
    std::memcpy(&version, block.data(), sizeof version);
    whole &= block == contents(version);
    versions.push_back(version);
  }
  co_await drive->close();
}

TEST(ModelledPower, FlushedAndDurableWritesOutliveACrashAndOthersAreOldOrNew) {
  uint64_t at_stake = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    std::vector<Known> known(kCores * kBlocksPerCore);
    std::vector<uint64_t> versions;
    bool whole = true;
    sim::Cluster cluster({.seed = seed});
    sim::Node& box = cluster.node("box", {.cores = kCores});
    box.start([&](env::Env& env) { return write_on_all_cores(env, known); });
    cluster.run_for(Duration{static_cast<int64_t>(Rng(seed).between(5, 400)) * 1'000'000});
    box.crash();
    cluster.run_for(1_ms);
    box.start([&](env::Env& env) { return read_all(env, versions, whole); });
    ASSERT_TRUE(cluster.run_until([&] { return versions.size() == known.size(); }, 10_s))
        << cluster.report();
    EXPECT_TRUE(whole) << "a torn block, seed " << seed;
    for (size_t i = 0; i < known.size(); ++i) {
      EXPECT_GE(versions[i], known[i].durable) << "block " << i << ", seed " << seed;
      EXPECT_LE(versions[i], known[i].asked) << "block " << i << ", seed " << seed;
      at_stake += known[i].acknowledged > known[i].durable ? 1 : 0;
    }
  }
  EXPECT_GT(at_stake, 50u) << "the test cuts power when something can be lost";
}

// How long a write, a flush after it, a durable write and a flush with nothing to do take.
task::Task<void> time_each(env::Env& env, flash::Parameters parameters,
                           std::vector<Duration>& took) {
  std::unique_ptr<Source> source =
      Source::make(env, spec_of("flash:profile=small,size=4M", parameters)).value();
  std::unique_ptr<Drive> drive = source->open(env).value();
  EXPECT_EQ(drive->geometry().volatile_cache, !parameters.cache_protected);
  std::vector<std::byte> block = contents(1);
  const MutableBytes piece(block);
  for (const bool durable : {false, true}) {
    const Request request{.kind = Request::Kind::kWrite, .durable = durable, .blocks = 1};
    Time start = env.now();
    Result<void> done = co_await drive->submit(request, std::span(&piece, 1));
    EXPECT_TRUE(done);
    took.push_back(env.now() - start);
    start = env.now();
    done = co_await drive->flush();
    EXPECT_TRUE(done);
    took.push_back(env.now() - start);
  }
  co_await drive->close();
}

TEST(ModelledPower, FlushesAndDurableWritesCostAProgramOnlyWithoutCapacitors) {
  for (const bool cache_protected : {true, false}) {
    flash::Parameters parameters = volatile_ssd();
    parameters.cache_protected = cache_protected;
    std::vector<Duration> took;
    sim::Cluster cluster(sim::ClusterOptions{});
    cluster.node("box").start([&](env::Env& env) { return time_each(env, parameters, took); });
    ASSERT_TRUE(cluster.run_until([&] { return took.size() == 4; }, 1_s));
    const auto programs = [&](size_t i) { return took[i] > 700_us; };
    EXPECT_FALSE(programs(0)) << "a write is done in DRAM";
    EXPECT_EQ(programs(1), !cache_protected) << "a flush waits for flash";
    EXPECT_EQ(programs(2), !cache_protected) << "so does a durable write";
    EXPECT_FALSE(programs(3)) << "nothing is left to flush";
  }
}

uint64_t pages_written(const Source& source) {
  uint64_t written = 0;
  const flash::FlashModel& model = source.modelled()->model();
  for (uint32_t plane = 0; plane < model.geometry().planes(); ++plane) {
    written += model.blocks().valid_pages(plane);
  }
  return written;
}

task::Task<void> use_and_reopen(env::Env& env, bool& done) {
  const auto make = [&env](std::string_view text) {
    return Source::make(env, spec_of(text, small_ssd())).value();
  };
  std::unique_ptr<Source> source = make("flash:profile=small,file=disk,size=4M");
  const uint64_t tables = pages_written(*source);
  std::unique_ptr<Drive> drive = source->open(env).value();
  for (uint64_t lba = 0; lba < 100; ++lba) {
    const Result<void> written = co_await drive->write(Lba(lba * 7), contents(lba + 1));
    EXPECT_TRUE(written);
  }
  const Result<void> discarded = co_await drive->discard(Lba(0), 70);
  EXPECT_TRUE(discarded);
  co_await drive->close();
  drive.reset();
  source.reset();
  // The file remembers what was written and what was trimmed.
  source = make("flash:profile=small,file=disk,size=4M");
  EXPECT_EQ(pages_written(*source) - tables, 90u);
  source.reset();
  source = make("flash:profile=small,file=disk,size=4M,precondition=60");
  const uint64_t pages = source->modelled()->bytes() / kBlock;
  EXPECT_NEAR(static_cast<double>(pages_written(*source) - tables),
              0.6 * static_cast<double>(pages), 2);
  source.reset();
  source = make("flash:profile=small,size=4M");
  EXPECT_EQ(pages_written(*source), tables);
  done = true;
}

TEST(ModelledPast, DriveIsAsFullAsItsFileAndAsItShallBe) {
  sim::Cluster cluster(sim::ClusterOptions{});
  bool done = false;
  sim::Node& box = cluster.node("box");
  box.start([&](env::Env& env) { return use_and_reopen(env, done); });
  EXPECT_TRUE(cluster.run_until([&] { return done; }, 10_s)) << cluster.report();
}

TEST(ModelledPast, PreconditionIsAPercentage) {
  EXPECT_EQ(Spec::parse("flash:profile=a,size=4M,precondition=80")->precondition, 80u);
  EXPECT_EQ(Spec::parse("flash:profile=a,size=4M,precondition=80")->text(),
            "flash:profile=a,size=4194304,block=4096,precondition=80");
  for (const char* wrong : {"91", "-1", "80%", "", "many"}) {
    const auto spec = Spec::parse(std::string("flash:profile=a,size=4M,precondition=") + wrong);
    ASSERT_FALSE(spec) << wrong;
    EXPECT_NE(spec.error().find("percentage from 0 to 90"), std::string::npos) << spec.error();
  }
  EXPECT_FALSE(Spec::parse("mem:size=4M,precondition=80"));
}

task::Task<void> trim_and_read(env::Env& env, bool& done) {
  std::unique_ptr<Source> source =
      Source::make(env, spec_of("flash:profile=small,size=4M,precondition=80", volatile_ssd()))
          .value();
  std::unique_ptr<Drive> drive = source->open(env).value();
  std::vector<std::byte> block(kBlock, std::byte{1});
  const Result<void> written = co_await drive->write(Lba(5), contents(9));
  const Result<void> trimmed = co_await drive->discard(Lba(5), 1);
  const Result<void> read = co_await drive->read(Lba(5), block);
  EXPECT_TRUE(written && trimmed && read);
  EXPECT_EQ(block, std::vector<std::byte>(kBlock));
  co_await drive->close();
  done = true;
}

TEST(ModelledPast, TrimmedBlocksReadAsZeroes) {
  sim::Cluster cluster(sim::ClusterOptions{});
  bool done = false;
  cluster.node("box").start([&](env::Env& env) { return trim_and_read(env, done); });
  EXPECT_TRUE(cluster.run_until([&] { return done; }, 10_s)) << cluster.report();
}

}  // namespace
}  // namespace cairn::drive
