// SPDX-License-Identifier: Apache-2.0
// In a steady state no I/O allocates: this program counts every call of operator new, and every
// allocation of OpenSSL.
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <atomic>  // lint: allow(the count is shared by the threads of a real world)
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "env/call.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace {

std::atomic<uint64_t> allocation_count = 0;  // lint: allow(see above)
std::atomic<uint64_t> openssl_count = 0;     // lint: allow(see above)

void* counted(size_t size, size_t alignment) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);  // lint: allow(see above)
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

void* counted_malloc(size_t size, const char*, int) {
  openssl_count.fetch_add(1, std::memory_order_relaxed);  // lint: allow(see above)
  return std::malloc(size);
}
void* counted_realloc(void* memory, size_t size, const char*, int) {
  openssl_count.fetch_add(1, std::memory_order_relaxed);  // lint: allow(see above)
  return std::realloc(memory, size);
}
void plain_free(void* memory, const char*, int) { std::free(memory); }

// Before OpenSSL allocates anything.
const bool counts_openssl =
    CRYPTO_set_mem_functions(&counted_malloc, &counted_realloc, &plain_free) == 1;

}  // namespace

void* operator new(size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace cairn::conformance {
namespace {

using env::Chunk;
using env::Disk;
using env::Env;
using env::Stream;
using task::Task;

// AddressSanitizer wants every coroutine frame to be a heap block of its own (task/frame.cc).
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAIRN_FRAMES_ARE_POOLED 0
#endif
#endif
#ifndef CAIRN_FRAMES_ARE_POOLED
#define CAIRN_FRAMES_ARE_POOLED 1
#endif

// Calm: with faults drawn at random, a pool of the simulator may reach a new height at any time.
template <class World>
class Allocation : public Conformance<World> {
  Setting setting() const override { return {.calm = true}; }
};
TYPED_TEST_SUITE(Allocation, Worlds, WorldNames);
template <class World>
class StreamAllocation : public Allocation<World> {};
TYPED_TEST_SUITE(StreamAllocation, StreamWorlds, WorldNames);

constexpr int kWarmUp = 2'000;
constexpr int kRounds = 10'000;
constexpr size_t kSize = 4096;
// A round is two records, each written and read; libssl's own packet writer allocates a few bytes
// twice for each of those four.
constexpr uint64_t kOfOpensslPerRound = 8;

// Runs `round` often enough to fill every pool, then counts.
template <class Round, class... Arguments>
Task<void> expect_no_allocation(Round round, Arguments&... arguments) {
  for (int i = 0; i < kWarmUp; ++i) {
    const bool good = co_await round(arguments...);
    EXPECT_TRUE(good);
  }
  const uint64_t before = allocation_count.load();
  const uint64_t openssl_before = openssl_count.load();
  bool all_good = true;
  for (int i = 0; i < kRounds; ++i) {
    const bool good = co_await round(arguments...);
    all_good = all_good && good;
  }
  const uint64_t after = allocation_count.load();
  EXPECT_LE(openssl_count.load() - openssl_before, kRounds * kOfOpensslPerRound);
  EXPECT_TRUE(all_good);
  if (CAIRN_FRAMES_ARE_POOLED) EXPECT_EQ(after - before, 0u) << "in " << kRounds << " rounds";
}

Task<bool> ask_by_read(Stream& stream, Buffer& ball) {
  const Result<void> written = co_await stream.write(ball.bytes());
  const Result<void> read = co_await env::read_exactly(stream, ball.bytes());
  co_return written.has_value() && read.has_value();
}
Task<void> echo_by_read(Stream& stream, const Buffer& ball) {
  while (true) {
    const Result<void> read = co_await env::read_exactly(stream, ball.bytes());
    if (!read) co_return;
    const Result<void> written = co_await stream.write(ball.bytes());
    EXPECT_TRUE(written.has_value());
  }
}

WORLD_TEST(StreamAllocation, PingPongByReadAllocatesNothing) {
  EXPECT_TRUE(counts_openssl);
  const Pair pair = co_await connected(env, scene);
  Buffer here = patterned(env, kSize, 1);
  const Buffer there = blank(env, kSize);
  Task<void> echoing = echo_by_read(*pair.b, there);
  co_await expect_no_allocation(&ask_by_read, *pair.a, here);
  EXPECT_TRUE(is_pattern(here.bytes(), 1));
  must(pair.a->finish());
  co_await echoing;
}

Task<bool> ask_by_receive(Stream& stream, Buffer& ball) {
  const Result<void> written = co_await stream.write(ball.bytes());
  if (!written) co_return false;
  size_t have = 0;
  while (have < ball.size()) {
    const Result<Chunk> chunk = co_await stream.receive();
    if (!chunk || chunk->empty()) co_return false;
    have += chunk->bytes().size();
  }
  co_return have == ball.size();
}
Task<void> echo_by_receive(Stream& stream) {
  while (true) {
    const Result<Chunk> chunk = co_await stream.receive();
    if (!chunk || chunk->empty()) co_return;
    const Result<void> written = co_await stream.write(chunk->bytes());
    EXPECT_TRUE(written.has_value());
  }
}

WORLD_TEST(StreamAllocation, PingPongByReceiveAllocatesNothing) {
  const Pair pair = co_await connected(env, scene);
  Buffer ball = patterned(env, kSize, 1);
  Task<void> echoing = echo_by_receive(*pair.b);
  co_await expect_no_allocation(&ask_by_receive, *pair.a, ball);
  must(pair.a->finish());
  co_await echoing;
}

Task<bool> write_and_read(Disk& disk, Buffer& buffer) {
  const Result<void> written = co_await disk.write(kSize, buffer.bytes());
  const Result<void> read = co_await disk.read(kSize, buffer.bytes());
  co_return written.has_value() && read.has_value();
}

WORLD_TEST(Allocation, DiskReadsAndWritesAllocateNothing) {
  if (scene.is_simulated()) {
    scene.skip("a simulated medium remembers what a power loss may bring back");
    co_return;
  }
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("steady", 1_MiB)));
  Buffer buffer = patterned(env, kSize, 1);
  co_await expect_no_allocation(&write_and_read, *disk, buffer);
}

Task<bool> call_there(Env& env) {
  const uint32_t there =
      co_await env::call_on(env, CoreId(1), [](Env& e) { return e.core().value(); });
  co_return there == 1;
}

WORLD_TEST(Allocation, CallsToAnotherCoreAllocateNothing) {
  co_await expect_no_allocation(&call_there, env);
}

Task<bool> sleep_with_deadline(Env& env) {
  task::Deadline deadline(env, env.now() + 1000_s, env.stop_token());
  const Result<void> slept = co_await task::sleep_for(env, 1_us, deadline.token());
  co_return slept.has_value();
}

WORLD_TEST(Allocation, SleepsAndDeadlinesAllocateNothing) {
  co_await expect_no_allocation(&sleep_with_deadline, env);
}

Task<bool> take_and_give(Env& env) {
  const Result<Buffer> small = env.buffers().allocate(4096);
  const Result<Buffer> large = env.buffers().allocate(100'000);
  co_return small.has_value() && large.has_value();
}

WORLD_TEST(Allocation, BuffersAllocateNothing) {
  co_await expect_no_allocation(&take_and_give, env);
}

}  // namespace
}  // namespace cairn::conformance
