// SPDX-License-Identifier: Apache-2.0
// Each service over drives whose metadata somebody has changed: it refuses them or serves them, and
// closes in good order. Blocks that carry their own checksum get a right one again, so that what is
// behind the checksum is reached.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "input.h"
#include "stack/services.h"
#include "stack/stack.h"
#include "testing/stack/files.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

using task::Task;

constexpr size_t kBlock = 4096;
constexpr size_t kStepsMax = 32;

std::string stack_of(const Service& service) {
  int files = 0;
  return example_over(service, [&] { return testing_leaf(service, fmt::format("d{}", files++)); });
}

// Where a block keeps the CRC32C of itself, if it does.
std::optional<size_t> find_checksum(Bytes block) {
  std::vector<std::byte> copy(block.begin(), block.end());
  for (size_t at = 0; at < 128; at += 4) {
    const auto stored = load<uint32_t>(block.subspan(at));
    if (stored == 0) continue;
    store(MutableBytes(copy).subspan(at), uint32_t{0});
    if (crc32c(copy) == stored) return at;
    store(MutableBytes(copy).subspan(at), stored);
  }
  return std::nullopt;
}

void change_block(sim::Medium& medium, fuzz::Input& input) {
  if (!medium.exists()) return;
  // Most of what a service keeps is in its first blocks, or in its last.
  const auto where = input.value<uint16_t>();
  const uint64_t blocks = medium.size() / kBlock;
  const uint64_t block = (where & 0x8000) != 0 ? blocks - 1 - where % 64 : where % 64;
  std::vector<std::byte> content(kBlock);
  medium.peek(block * kBlock, content);
  const std::optional<size_t> checksum = find_checksum(content);
  const auto offset = input.value<uint16_t>() % kBlock;
  const Bytes with = input.take(input.value<uint8_t>() % 16);
  for (size_t i = 0; i < with.size() && offset + i < kBlock; ++i) content[offset + i] = with[i];
  if (checksum) {
    store(MutableBytes(content).subspan(*checksum), uint32_t{0});
    store(MutableBytes(content).subspan(*checksum), crc32c(content));
  }
  medium.poke(block * kBlock, content);
}

// Some of every kind of request; what comes of them is the service's affair.
Task<void> use(Drive& drive) {
  const Geometry shape = drive.geometry();
  CHECK(shape.block_size >= 512 && shape.block_size <= 65536 && shape.blocks > 0);
  std::vector<std::byte> memory(size_t{2} * shape.block_size, std::byte{7});
  if (shape.blocks < 4 || shape.transfer_blocks < 2) co_return;
  for (const uint64_t at : {uint64_t{0}, shape.blocks / 2, shape.blocks - 2}) {
    Result<void> done = co_await drive.read(Lba(at), memory);
    done = co_await drive.write(Lba(at), memory);
    done = co_await drive.discard(Lba(at + 1), 1);
    done = co_await drive.write_zeroes(Lba(at), 1);
    done = co_await drive.compare(Lba(at), memory);
    done = co_await drive.write(Lba(at), memory);
    const Extent extent = drive.extent_at(Lba(at), 2);
    CHECK(extent.blocks >= 1 && extent.blocks <= 2);
  }
  Result<void> flushed = co_await drive.flush();
  (void)flushed;
  const std::vector<Fact> facts = drive.facts();
  for (const Fact& fact : facts) CHECK(!fact.name.empty());
}

Task<void> live(env::Env& env, std::string text, bool must_open) {
  LeavesWithFiles leaves({{"drive.key", testing_key(1)}});
  Opened opened = co_await open_stack(env, text, leaves);
  CHECK(opened || !must_open, "the example opens");
  if (!opened) {
    CHECK(!opened.error().text.empty());
    co_return;
  }
  co_await use(**opened);
  co_await (*opened)->close();
}

void run(fuzz::Input input) {
  const auto table = services();
  const Service& service = *table[input.value<uint8_t>() % table.size()];
  const std::string text = stack_of(service);
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  const auto has_ended = [&] { return !node.is_running(); };
  node.start([&](env::Env& env) { return live(env, text, true); });
  CHECK(cluster.run_until(has_ended, 1000_s));
  for (size_t i = 0; i < kStepsMax && !input.is_over(); ++i) {
    change_block(node.disk(fmt::format("d{}", input.value<uint8_t>() % 4)), input);
  }
  node.start([&](env::Env& env) { return live(env, text, false); });
  CHECK(cluster.run_until(has_ended, 1000_s));
}

}  // namespace
}  // namespace cairn::drive

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  cairn::drive::run(cairn::fuzz::Input(std::as_bytes(std::span(bytes, size))));
  return 0;
}
