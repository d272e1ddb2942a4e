// SPDX-License-Identifier: Apache-2.0
// The words conformance tests are written in: connected pairs, operations as tasks, known bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"
#include "testing/worlds/scene.h"

namespace cairn::conformance {

// Ends the test program with the error: for steps without which the rest makes no sense.
[[noreturn]] void give_up(const Error& error, std::source_location where);

template <class T>
T must(Result<T> result, std::source_location where = std::source_location::current()) {
  if (!result) give_up(result.error(), where);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// "ok", or the error's name: what EXPECT_EQ compares, so that a failure says what came instead.
template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : std::string(name(result.error().code()));
}

// Lets everything that is ready run, and a little time pass.
task::Task<void> turn(env::Env& env);
// Lets a random time pass: from nothing to a fraction of a millisecond, so that what it is meant to
// race with may be before, at or after its end in every world.
task::Task<void> hesitate(env::Env& env);

// The two ends of one connection, both on this core.
struct Pair {
  std::unique_ptr<env::Stream> a;
  std::unique_ptr<env::Stream> b;
};
task::Task<Pair> connected(env::Env& env, Scene& scene, env::StreamOptions options = {});
task::Task<Pair> connected_at(env::Env& env, env::Address at, env::StreamOptions options = {});

// Small kernel buffers, so that a few megabytes are more than all of them hold.
inline constexpr env::StreamOptions kSmallBuffers = {
    .no_delay = true, .send_buffer_size = 64 << 10, .receive_buffer_size = 64 << 10};
// More than any world holds between a writer and a reader that have kSmallBuffers.
inline constexpr size_t kInFlightMax = 4 << 20;

// Operations as tasks, so that several can run side by side. They borrow what the operation does.
task::Task<Result<size_t>> read_some(env::Stream& stream, MutableBytes into,
                                     task::CancelToken token = {});
task::Task<Result<void>> write_all(env::Stream& stream, Bytes from, task::CancelToken token = {});
task::Task<Result<env::Chunk>> receive_one(env::Stream& stream, task::CancelToken token = {});
task::Task<Result<env::Connection>> accept_one(env::Listener& listener,
                                               task::CancelToken token = {});
task::Task<Result<env::Connection>> connect_to(env::Env& env, env::Address to,
                                               task::CancelToken token = {});
task::Task<Result<void>> doze(env::Env& env, Duration duration, task::CancelToken token = {});
task::Task<Result<void>> disk_read(env::Disk& disk, uint64_t offset, MutableBytes into,
                                   task::CancelToken token = {});
task::Task<Result<void>> disk_write(env::Disk& disk, uint64_t offset, Bytes from,
                                    task::CancelToken token = {});
task::Task<Result<void>> disk_flush(env::Disk& disk, task::CancelToken token = {});
task::Task<Result<void>> disk_discard(env::Disk& disk, uint64_t offset, uint64_t length,
                                      task::CancelToken token = {});
task::Task<Result<void>> disk_write_zeroes(env::Disk& disk, uint64_t offset, uint64_t length,
                                           task::CancelToken token = {});

// Everything up to the peer's end, by read() or by receive().
task::Task<Result<std::vector<std::byte>>> drain(env::Stream& stream, size_t piece_size = 65536);
task::Task<Result<std::vector<std::byte>>> drain_chunks(env::Stream& stream);

// Bytes that tell where they belong: position `at` of the sequence named by `seed`.
std::byte byte_at(uint64_t seed, uint64_t at);
void fill_pattern(MutableBytes into, uint64_t seed, uint64_t at = 0);
std::vector<std::byte> pattern(size_t size, uint64_t seed);
// Whether `bytes` are those from position `at` on.
bool is_pattern(Bytes bytes, uint64_t seed, uint64_t at = 0);
bool is_zero(Bytes bytes);

// A buffer of the core's pool, filled from the sequence.
Buffer patterned(env::Env& env, size_t size, uint64_t seed, uint64_t at = 0);
Buffer blank(env::Env& env, size_t size);

}  // namespace cairn::conformance
