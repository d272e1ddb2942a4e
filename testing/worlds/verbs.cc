// SPDX-License-Identifier: Apache-2.0
#include "testing/worlds/verbs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/rng.h"
#include "base/units.h"
#include "env/io.h"
#include "task/deadline.h"
#include "testing/worlds/encrypted.h"

namespace cairn::conformance {

using env::Address;
using env::Chunk;
using env::Connection;
using env::Disk;
using env::Env;
using env::Listener;
using env::Stream;
using env::StreamOptions;
using task::CancelToken;
using task::Task;

void give_up(const Error& error, std::source_location where) {
  std::fprintf(stderr, "%s:%u: %s\n", where.file_name(), where.line(), error.text().c_str());
  std::fflush(nullptr);
  std::abort();
}

Task<void> turn(Env& env) {
  const Result<void> slept = co_await task::sleep_for(env, 1_us);
  must(slept);
}
Task<void> hesitate(Env& env) {
  const uint64_t below = uint64_t{1} << env.rng().below(19);
  const Duration time{static_cast<int64_t>(env.rng().below(below))};
  const Result<void> slept = co_await task::sleep_for(env, time);
  must(slept);
}

Task<Pair> connected_at(Env& env, Address at, StreamOptions options) {
  const std::unique_ptr<Listener> listener = must(env.listen(at, {.stream = options}));
  Task<Result<Connection>> accepting = accept_one(*listener);
  auto connecting = env::connect_stream(env, listener->local(), options);
  Result<std::unique_ptr<Stream>> connecting_end = co_await connecting;
  Result<Connection> accepted = co_await accepting;
  Pair pair;
  pair.a = must(std::move(connecting_end));
  pair.b = env.open(must(std::move(accepted)));
  co_return pair;
}
Task<Pair> connected(Env& env, Scene& scene, StreamOptions options) {
  Pair pair = co_await connected_at(env, scene.any_port(), options);
  if (scene.is_encrypted()) pair = co_await encrypted(env, scene, std::move(pair));
  co_return pair;
}

Task<void> run_to_end(Env& env, Scene& scene, Body body) {
  co_await body(env, scene);
  co_await scene.lingering().close();
}

Task<Result<size_t>> read_some(Stream& stream, MutableBytes into, CancelToken token) {
  const Result<size_t> result = co_await stream.read(into, token);
  co_return result;
}
Task<Result<void>> write_all(Stream& stream, Bytes from, CancelToken token) {
  const Result<void> result = co_await stream.write(from, token);
  co_return result;
}
Task<Result<Chunk>> receive_one(Stream& stream, CancelToken token) {
  Result<Chunk> result = co_await stream.receive(token);
  co_return std::move(result);
}
Task<Result<Connection>> accept_one(Listener& listener, CancelToken token) {
  Result<Connection> result = co_await listener.accept(token);
  co_return std::move(result);
}
Task<Result<Connection>> connect_to(Env& env, Address to, CancelToken token) {
  Result<Connection> result = co_await env.connect(std::move(to), token);
  co_return std::move(result);
}
Task<Result<void>> doze(Env& env, Duration duration, CancelToken token) {
  const Result<void> result = co_await task::sleep_for(env, duration, token);
  co_return result;
}
Task<Result<void>> disk_read(Disk& disk, uint64_t offset, MutableBytes into, CancelToken token) {
  const Result<void> result = co_await disk.read(offset, into, token);
  co_return result;
}
Task<Result<void>> disk_write(Disk& disk, uint64_t offset, Bytes from, CancelToken token) {
  const Result<void> result = co_await disk.write(offset, from, Disk::WriteOptions{}, token);
  co_return result;
}
Task<Result<void>> disk_flush(Disk& disk, CancelToken token) {
  const Result<void> result = co_await disk.flush(token);
  co_return result;
}
Task<Result<void>> disk_discard(Disk& disk, uint64_t offset, uint64_t length, CancelToken token) {
  const Result<void> result = co_await disk.discard(offset, length, token);
  co_return result;
}
Task<Result<void>> disk_write_zeroes(Disk& disk, uint64_t offset, uint64_t length,
                                     CancelToken token) {
  const Result<void> result =
      co_await disk.write_zeroes(offset, length, Disk::WriteOptions{}, token);
  co_return result;
}

Task<Result<std::vector<std::byte>>> drain(Stream& stream, size_t piece_size) {
  std::vector<std::byte> all;
  std::vector<std::byte> piece(piece_size);
  while (true) {
    const Result<size_t> got = co_await stream.read(piece);
    if (!got) co_return fail(got.error());
    if (*got == 0) co_return std::move(all);
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*got));
  }
}
Task<Result<std::vector<std::byte>>> drain_chunks(Stream& stream) {
  std::vector<std::byte> all;
  while (true) {
    const Result<Chunk> chunk = co_await stream.receive();
    if (!chunk) co_return fail(chunk.error());
    if (chunk->empty()) co_return std::move(all);
    all.insert(all.end(), chunk->bytes().begin(), chunk->bytes().end());
  }
}

std::byte byte_at(uint64_t seed, uint64_t at) {
  return static_cast<std::byte>(mix64(seed ^ mix64(at / 8)) >> (at % 8 * 8));
}
void fill_pattern(MutableBytes into, uint64_t seed, uint64_t at) {
  while (!into.empty() && at % 8 != 0) {
    into.front() = byte_at(seed, at++);
    into = into.subspan(1);
  }
  for (; into.size() >= 8; at += 8) {
    store(into, mix64(seed ^ mix64(at / 8)));
    into = into.subspan(8);
  }
  for (std::byte& last : into) last = byte_at(seed, at++);
}
std::vector<std::byte> pattern(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  fill_pattern(bytes, seed);
  return bytes;
}
bool is_pattern(Bytes bytes, uint64_t seed, uint64_t at) {
  std::vector<std::byte> expected(bytes.size());
  fill_pattern(expected, seed, at);
  return std::ranges::equal(bytes, expected);
}
bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Buffer patterned(Env& env, size_t size, uint64_t seed, uint64_t at) {
  Buffer buffer = blank(env, size);
  fill_pattern(buffer.bytes(), seed, at);
  return buffer;
}
Buffer blank(Env& env, size_t size) {
  Buffer buffer = must(env.buffers().allocate(size));
  // Not zeroes: those are what some tests look for.
  std::memset(buffer.data(), 0xa5, buffer.size());
  return buffer;
}

}  // namespace cairn::conformance
