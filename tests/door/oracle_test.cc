// SPDX-License-Identifier: Apache-2.0
// Random requests of any offset and length over several connections on several cores, against plain
// memory that knows what should be there. Connections own ranges that meet inside blocks, so that
// parts of one block are written by several at once.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "door/door.h"
#include "drive/shared_drive.h"
#include "env/call.h"
#include "stack/stack.h"
#include "task/when_all.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdOracle);

constexpr size_t kClients = 5;
constexpr int kRounds = 150;

// What they use, and how many bytes each of them has there: no multiple of anything.
struct Export {
  const char* name;
  uint64_t share;
};
// Memory in many blocks; a disk that takes its time, where a block belongs to several; a stack on
// one core, which the others ask.
constexpr Export kExports[] = {{"small", 50'021}, {"disk", 1'501}, {"stack", 9'001}};

struct Owner {
  uint64_t begin = 0;
  Content expected;
};

Task<void> change(NbdClient& client, Owner& owner, Rng& rng, uint64_t at, uint32_t length) {
  const uint16_t fua = rng.below(2) == 0 ? door::nbd::kFlagFua : uint16_t{0};
  const auto place = owner.expected.begin() + static_cast<ptrdiff_t>(at);
  if (rng.below(4) == 0) {
    const Result<Answer> done =
        co_await client.call({Command::kWriteZeroes, owner.begin + at, length, fua});
    EXPECT_EQ(must(done).error, 0u);
    std::fill_n(place, length, std::byte{0});
    co_return;
  }
  const Content data = pattern(length, rng.next());
  const Result<Answer> done =
      co_await client.call({Command::kWrite, owner.begin + at, length, fua}, data);
  EXPECT_EQ(must(done).error, 0u);
  std::ranges::copy(data, place);
}

Task<void> use(env::Env& env, env::Address at, Export served, size_t number, uint64_t seed) {
  Rng rng(seed + number);
  Owner owner{.begin = 777 + number * served.share, .expected = Content(served.share)};
  NbdClient client(env);
  const Result<Told> told = co_await client.arrive(at, served.name, number % 2 == 0);
  must(told);
  for (int i = 0; i < kRounds; ++i) {
    const uint64_t from = rng.below(served.share);
    const auto max =
        std::min<uint64_t>(served.share - from, rng.below(3) == 0 ? served.share : 1500);
    const auto length = static_cast<uint32_t>(1 + rng.below(max));
    if (rng.below(3) != 0) {
      co_await change(client, owner, rng, from, length);
      continue;
    }
    const Result<Answer> read =
        co_await client.call({Command::kRead, owner.begin + from, length, 0});
    const bool same =
        std::ranges::equal(must(read).data, Bytes(owner.expected).subspan(from, length));
    EXPECT_TRUE(same) << "client " << number << ", round " << i;
  }
  const Result<Answer> read =
      co_await client.call({Command::kRead, owner.begin, static_cast<uint32_t>(served.share), 0});
  EXPECT_TRUE(must(read).data == owner.expected) << "client " << number;
}

Task<std::unique_ptr<drive::Source>> share(env::Env& home, std::string text,
                                           drive::Leaves& leaves) {
  drive::Opened drive = co_await drive::open_stack(home, std::move(text), leaves);
  CHECK(drive.has_value());
  co_return std::make_unique<drive::SharedDrive>(home, std::move(*drive));
}

WORLD_TEST(NbdOracle, SeveralConnectionsFindWhatTheyWrote) {
  Door door(env);
  drive::SourceLeaves leaves;
  const CoreId home(env.core_count() - 1);
  const env::DiskOptions below = scene.disk("stack", 1 << 20);
  const std::string text = fmt::format("priority(\"file:{},size=1M,direct={}\")", below.path,
                                       below.direct ? "on" : "off");
  std::unique_ptr<drive::Source> stack =
      co_await env::call_on(env, home, [&](env::Env& there) { return share(there, text, leaves); });
  drive::Source& shared = *stack;
  co_await door.add({.name = "stack", .description = ""}, std::move(stack));
  const env::DiskOptions disk = scene.disk("nbd", 1 << 20);
  co_await door.add({.name = "disk", .description = ""}, {.kind = drive::Spec::Kind::kFile,
                                                          .path = disk.path,
                                                          .size = 1 << 20,
                                                          .direct = disk.direct});
  co_await door.open(scene.any_port());
  const uint64_t seed = env.rng().next();
  for (const Export& served : kExports) {
    std::vector<Task<void>> clients;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(use(env, door.address, served, i, seed));
    }
    co_await task::when_all(std::move(clients));
  }
  co_await door.close();
  co_await shared.close(env);
  co_await env::call_on(env, home, [&leaves](env::Env&) { leaves.close(); });
}

}  // namespace
}  // namespace cairn::door_tests
