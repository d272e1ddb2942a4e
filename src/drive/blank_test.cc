// SPDX-License-Identifier: Apache-2.0
#include "drive/blank.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "stack/services.h"
#include "testing/sim_test.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

task::Task<std::string> remains_on(env::Env& env, Drive& drive) {
  const Result<std::optional<Remains>> found = co_await find_remains(env, drive);
  if (!found) co_return found.error().text();
  co_return *found ? fmt::format("{} at {}", (*found)->what, (*found)->byte) : "";
}

SIM_TEST(Blank, SparseFileAndFreshMemoryAreBlank) {
  SourceLeaves leaves;
  for (const char* leaf : {"file:sparse,size=4G", "mem:size=8M", "mem:size=64M"}) {
    const std::unique_ptr<Drive> drive = co_await must_open(env, leaf, leaves);
    EXPECT_EQ(co_await remains_on(env, *drive), "") << leaf;
    co_await drive->close();
  }
}

SIM_TEST(Blank, OneBlockAnywhereOnASparseFileIsFound) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "file:big,size=4G", leaves);
  co_await write_value(*drive, 700'001, 7);
  EXPECT_EQ(co_await remains_on(env, *drive), fmt::format("data at {}", 700'001ULL * 4096));
  co_await drive->close();
}

SIM_TEST(Blank, UsedThenDiscardedIsBlankAgain) {
  SourceLeaves leaves;
  for (const char* leaf : {"file:used,size=8M", "mem:size=8M"}) {
    const std::unique_ptr<Drive> drive = co_await must_open(env, leaf, leaves);
    co_await write_value(*drive, 0, 1, 64);
    co_await write_value(*drive, 1280, 1);
    EXPECT_NE(co_await remains_on(env, *drive), "");
    EXPECT_TRUE((co_await drive->discard(Lba(0), drive->geometry().blocks)).has_value());
    EXPECT_EQ(co_await remains_on(env, *drive), "");
    co_await drive->close();
  }
}

// Of a drive that knows no holes and is too large to be read, samples tell.
SIM_TEST(Blank, SamplesFindAFileOnALargeDriveWithoutAMap) {
  SourceLeaves leaves;
  const std::unique_ptr<Drive> drive = co_await must_open(env, "mem:size=64M", leaves);
  for (uint64_t block = 8192; block < 8192 + 256; block += 128) {
    co_await write_value(*drive, block, 3, 128);
  }
  EXPECT_NE(co_await remains_on(env, *drive), "") << "1 of 64 MiB is in use";
  co_await drive->close();
}

TEST(Blank, NamesWhatItKnows) {
  const struct {
    uint64_t byte;
    std::string_view bytes;
    const char* what;
  } known[] = {{65536 + 64, "_BHRfS_M", "btrfs"},
               {1024 + 56, "\x53\xef", "ext4"},
               {0, "XFSB", "XFS"},
               {512, "EFI PART", "GPT"},
               {510, "\x55\xaa", "partition"},
               {512, "LABELONE", "LVM2"},
               {0, "LUKS\xba\xbe", "LUKS"},
               {4086, "SWAPSPACE2", "swap"},
               {3, "NTFS    ", "NTFS"},
               {82, "FAT32", "FAT"},
               {32769, "CD001", "ISO 9660"},
               {4096, "\xfc\x4e\x2b\xa9", "RAID"},
               {0, "QFI\xfb", "qcow2"},
               {0, "CrnLabel", "another service of a stack"},
               {0, "CnMirror", "mirror"}};
  for (const auto& [byte, bytes, what] : known) {
    std::vector<std::byte> head(1_MiB);
    std::ranges::copy(as_bytes(bytes), head.begin() + static_cast<ptrdiff_t>(byte));
    const std::vector<std::byte> tail(1_MiB);
    const std::optional<Remains> found = find_signature(head, tail, 64_MiB);
    ASSERT_TRUE(found) << what;
    EXPECT_NE(found->what.find(what), std::string::npos) << found->what;
    EXPECT_EQ(found->byte, byte);
  }
}

TEST(Blank, NamesWhatLiesAtTheEnd) {
  const struct {
    uint64_t before_end;
    std::string_view bytes;
    const char* what;
  } known[] = {{512, "EFI PART", "GPT"},
               {8_KiB, "\xfc\x4e\x2b\xa9", "RAID"},
               {64_KiB, "\xfc\x4e\x2b\xa9", "RAID"},
               {128_KiB, std::string_view("\x0c\xb1\xba\x00\x00\x00\x00\x00", 8), "ZFS"}};
  for (const auto& [before_end, bytes, what] : known) {
    const std::vector<std::byte> head(1_MiB);
    std::vector<std::byte> tail(1_MiB);
    std::ranges::copy(as_bytes(bytes), tail.end() - static_cast<ptrdiff_t>(before_end));
    const std::optional<Remains> found = find_signature(head, tail, 64_MiB);
    ASSERT_TRUE(found) << what;
    EXPECT_NE(found->what.find(what), std::string::npos) << found->what;
  }
}

// Of a service over files of 8 MiB; the last one has the name "last".
struct Layer {
  std::string stack;
  std::vector<std::string> files;
};
Layer layer_of(const Service& service) {
  size_t count = 0;
  example_over(service, [&] { return fmt::format("{}", count++); });
  Layer layer;
  layer.stack = example_over(service, [&] {
    const bool is_last = layer.files.size() + 1 == count;
    layer.files.push_back(is_last ? "last" : fmt::format("d{}", layer.files.size()));
    return fmt::format("file:{},size=8M", layer.files.back());
  });
  return layer;
}

// Why it does not open; a value other than 0 is written, or must be there.
task::Task<std::string> open_once(env::Env& env, std::string stack, bool formats, int write,
                                  int expect) {
  LeavesWithFiles leaves({{"drive.key", testing_key(1)}});
  leaves.formats = formats;
  Opened drive = co_await open_stack(env, stack, leaves);
  if (!drive) co_return drive.error().text;
  if (write != 0) co_await write_value(**drive, 3, static_cast<uint8_t>(write));
  if (expect != 0) EXPECT_EQ(co_await read_value(**drive, 3), expect) << stack;
  co_await (*drive)->close();
  co_return "";
}
task::Task<void> open_and_say(env::Env& env, std::string stack, bool formats, int write, int expect,
                              std::string& why) {
  why = co_await open_once(env, stack, formats, write, expect);
}

std::string open_in(sim::Cluster& cluster, const std::string& stack, bool formats = false,
                    int write = 0, int expect = 0) {
  std::string why;
  run_in_sim(cluster,
             [&](env::Env& env) { return open_and_say(env, stack, formats, write, expect, why); });
  return why;
}

// Those that keep something of their own, told by what they do.
std::vector<const Service*> services_that_label() {
  std::vector<const Service*> all;
  for (const Service* service : services()) {
    if (!service->leaf_only.empty()) continue;
    const Layer layer = layer_of(*service);
    sim::Cluster cluster;
    if (!open_in(cluster, layer.stack).empty()) continue;
    const std::vector<std::byte> after = contents_of(cluster.node("host").disk("last"));
    if (after != std::vector<std::byte>(after.size())) all.push_back(service);
  }
  return all;
}

TEST(Blank, ServicesThatLabelAreKnown) {
  std::vector<std::string_view> names;
  for (const Service* service : services_that_label()) names.push_back(service->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"atomic", "cache", "checksum", "compress",
                                                  "dedup", "encrypt", "mirror", "parity",
                                                  "snapshot", "spillover", "thin"}));
}

struct Precious {
  uint64_t byte;
  std::string_view bytes;
  const char* what;
};
// Behind zeroes that a look at labels takes for a blank drive.
constexpr Precious kPrecious[] = {{5_MiB, "precious", "data at byte 5242880"},
                                  {65536 + 64, "_BHRfS_M", "a btrfs file system at byte 65600"}};

void expect_refused_unless_told(const std::string& stack) {
  for (const Precious& precious : kPrecious) {
    sim::Cluster cluster;
    sim::Medium& last = cluster.node("host").disk("last");
    last.create(8_MiB);
    last.poke(precious.byte, as_bytes(precious.bytes));
    const std::vector<std::byte> before = contents_of(last);
    const std::string why = open_in(cluster, stack);
    EXPECT_NE(why.find("file:last"), std::string::npos) << stack << ": " << why;
    EXPECT_NE(why.find(precious.what), std::string::npos) << why;
    EXPECT_NE(why.find("--format"), std::string::npos) << why;
    EXPECT_EQ(before, contents_of(last)) << stack;
    EXPECT_EQ(open_in(cluster, stack, true, 9), "");
    EXPECT_EQ(open_in(cluster, stack, false, 0, 9), "") << "it is its own from then on";
  }
}

TEST(Blank, NoServiceTakesADriveWithDataUnlessTold) {
  for (const Service* service : services_that_label()) {
    SCOPED_TRACE(service->name);
    expect_refused_unless_told(layer_of(*service).stack);
  }
}

TEST(Blank, NorDoesACacheOnEitherOfItsDrives) {
  expect_refused_unless_told("cache(file:last,size=8M, file:fast,size=8M)");
  expect_refused_unless_told("cache(file:slow,size=8M, file:last,size=8M)");
}

TEST(Blank, NorDoesAMirrorAsASpareOrAsAnyLeg) {
  expect_refused_unless_told("mirror(file:last,size=8M, file:b,size=8M)");
  sim::Cluster cluster;
  EXPECT_EQ(open_in(cluster, "mirror(file:a,size=8M, file:b,size=8M)"), "");
  sim::Medium& last = cluster.node("host").disk("last");
  last.create(8_MiB);
  last.poke(5_MiB, as_bytes("precious"));
  const std::string why = open_in(cluster, "mirror(file:a, file:b, file:last, spares=1)");
  EXPECT_NE(why.find("file:last holds something else"), std::string::npos) << why;
}

// Power fails at any moment while drives are made: they open then, without another word.
TEST(Blank, ADriveThatWasBeingMadeOpensAfterACrash) {
  std::vector<std::string> stacks = {"cache(file:last,size=8M, file:fast,size=8M)"};
  for (const Service* service : services_that_label()) stacks.push_back(layer_of(*service).stack);
  for (const std::string& stack : stacks) {
    for (int moment = 1; moment <= 40; ++moment) {
      sim::Cluster cluster({.seed = static_cast<uint64_t>(moment)});
      sim::Node& node = cluster.node("host");
      std::string said;
      node.start([&](env::Env& env) { return open_and_say(env, stack, false, 0, 0, said); });
      const bool is_done = cluster.run_until([&] { return !node.is_running(); }, 50_us * moment);
      if (!is_done) node.crash();
      EXPECT_EQ(open_in(cluster, stack, false, 9), "") << stack << " at " << moment;
      EXPECT_EQ(open_in(cluster, stack, false, 0, 9), "") << stack << " at " << moment;
    }
  }
}

// The same where drives are taken that hold something: they open, or hold it still.
TEST(Blank, ADriveThatWasBeingTakenOpensAfterACrashOrIsUntouched) {
  std::vector<std::string> stacks = {"cache(file:fast,size=8M, file:last,size=8M)"};
  for (const Service* service : services_that_label()) stacks.push_back(layer_of(*service).stack);
  for (const std::string& stack : stacks) {
    for (int moment = 1; moment <= 40; ++moment) {
      sim::Cluster cluster({.seed = static_cast<uint64_t>(moment)});
      sim::Node& node = cluster.node("host");
      sim::Medium& last = node.disk("last");
      last.create(8_MiB);
      last.poke(0, blocks_of(7, 2));
      const std::vector<std::byte> before = contents_of(last);
      std::string said;
      node.start([&](env::Env& env) { return open_and_say(env, stack, true, 0, 0, said); });
      const bool is_done = cluster.run_until([&] { return !node.is_running(); }, 50_us * moment);
      if (!is_done) node.crash();
      const std::string why = open_in(cluster, stack);
      if (!why.empty()) EXPECT_EQ(before, contents_of(last)) << stack << ": " << why;
      EXPECT_EQ(open_in(cluster, stack, true, 9), "");
      EXPECT_EQ(open_in(cluster, stack, false, 0, 9), "");
    }
  }
}

}  // namespace
}  // namespace cairn::drive
