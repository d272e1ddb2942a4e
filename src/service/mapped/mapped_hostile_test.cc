// SPDX-License-Identifier: Apache-2.0
// Metadata of thin, snapshot and spillover drives that was changed by somebody who knows the
// checksums: it is refused, or serves something, and never ends the process.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "service/common/journal_format.h"
#include "service/common/label.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kSize = 2_MiB;

struct Case {
  std::string_view service;
  std::string stack;
};

const Case kCases[] = {
    {"thin", "thin(file:d0,size=2M, chunk=16K)"},
    {"snapshot", "snapshot(file:d0,size=2M, chunk=16K)"},
    {"spillover", "spillover(file:d0,size=2M, file:d1,size=2M, chunk=16K, drain_ms=1)"},
};

// A bit of everything; what comes of it does not matter.
task::Task<void> use(env::Env& env, Drive& drive, int requests) {
  Rng& rng = env.rng();
  std::vector<std::byte> data(8 * kBlock, std::byte{7});
  for (int i = 0; i < requests; ++i) {
    const uint64_t count = rng.between(1, 8);
    if (drive.geometry().blocks <= count) co_return;
    const Lba lba(rng.below(drive.geometry().blocks - count));
    const MutableBytes memory = MutableBytes(data).first(count * kBlock);
    const uint64_t draw = rng.below(10);
    Result<void> done;
    if (draw < 4) {
      done = co_await drive.write(lba, memory);
    } else if (draw < 6) {
      done = co_await drive.read(lba, memory);
    } else if (draw < 7) {
      done = co_await drive.discard(lba, rng.below(200) % (drive.geometry().blocks - lba.value()));
    } else if (draw < 8) {
      done = co_await drive.flush();
    } else {
      const std::string version = std::to_string(rng.between(1, 4));
      const std::vector<std::string> args[] = {{"take"},
                                               {"remove", version},
                                               {"rollback", version},
                                               {"clone", version, "c" + version},
                                               {"list"},
                                               {"remove", "clone:c" + version}};
      [[maybe_unused]] const auto answer = co_await drive.tell(args[rng.below(6)]);
      Result<std::unique_ptr<Drive>> view =
          drive.open_view(rng.bernoulli(0.5) ? version : "clone:c" + version);
      if (view) {
        done = co_await (*view)->read(lba, memory);
        done = co_await (*view)->write(lba, memory);
        co_await (*view)->close();
      }
    }
  }
}

task::Task<void> open_and_use(env::Env& env, std::string stack, int requests, bool& opens) {
  SourceLeaves leaves;
  Opened drive = co_await open_stack(env, stack, leaves);
  opens = drive.has_value();
  if (!opens) co_return;
  co_await use(env, **drive, requests);
  co_await (*drive)->close();
}

void change_some(Rng& rng, MutableBytes bytes) {
  for (uint64_t i = rng.between(1, 6); i > 0 && !bytes.empty(); --i) {
    std::byte& byte = bytes[rng.below(bytes.size())];
    const auto small = static_cast<std::byte>(rng.below(rng.bernoulli(0.5) ? 6 : 256));
    byte = rng.bernoulli(0.5) ? small : byte ^ static_cast<std::byte>(1 << rng.below(8));
  }
}

// Records in blocks of the journal, their lengths as they are; and the body of a label.
void change_metadata(sim::Medium& disk, std::string_view service, Rng& rng) {
  const LabelKind kind{.service = service, .version = 1};
  std::vector<std::byte> block(kBlock);
  JournalId id{};
  for (uint64_t i = 0; i < kLabelBlocks; ++i) {
    disk.peek(i * kBlock, block);
    Result<Label> label = decode_label(kind, block);
    if (!label) continue;
    id = label->id;
    if (rng.bernoulli(0.8)) continue;
    change_some(rng, label->body);
    encode_label(kind, *label, block);
    disk.poke(i * kBlock, block);
  }
  for (uint64_t at = kLabelBlocks * kBlock; at < kSize; at += kBlock) {
    disk.peek(at, block);
    const auto found = decode_journal_block(id, block);
    if (!found || rng.bernoulli(0.5)) continue;
    std::vector<std::byte> records(found->records.begin(), found->records.end());
    Bytes rest = records;
    while (const std::optional<Bytes> record = take_record(rest)) {
      if (rng.bernoulli(0.9)) continue;
      const auto first = static_cast<size_t>(record->data() - records.data());
      change_some(rng, MutableBytes(records).subspan(first, record->size()));
    }
    std::vector<std::byte> changed(kBlock);
    encode_journal_block(found->head, records, changed);
    disk.poke(at, changed);
  }
}

TEST(MappedDrives, SurviveMetadataOfAnEnemy) {
  for (const Case& one : kCases) {
    int opened = 0;
    int refused = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      Rng rng(seed);
      sim::Cluster cluster({.seed = seed});
      sim::Node& node = cluster.node("host");
      bool opens = false;
      for (int life = 0; life < 3; ++life) {
        const int requests = life == 0 ? 150 : 40;
        node.start([&](env::Env& env) { return open_and_use(env, one.stack, requests, opens); });
        ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
        if (life > 0) ++(opens ? opened : refused);
        change_metadata(node.disk("d0"), one.service, rng);
      }
    }
    // Both happen, or the changes were too small or too large to say anything.
    EXPECT_GT(opened, 5) << one.service;
    EXPECT_GT(refused, 5) << one.service;
  }
}

}  // namespace
}  // namespace cairn::drive
