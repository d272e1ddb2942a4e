// SPDX-License-Identifier: Apache-2.0
// Stacks on a simulated core: opened, read and written by tests of services.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stack/stack.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::drive {

using sim::run_in_sim;

// A stack that opens, or a failed test.
inline task::Task<std::unique_ptr<Drive>> must_open(env::Env& env, std::string text,
                                                    Leaves& leaves) {
  Opened drive = co_await open_stack(env, text, leaves);
  if (!drive) {
    ADD_FAILURE() << drive.error().show(text);
    co_return nullptr;
  }
  co_return std::move(*drive);
}

// Why a stack does not open; empty when it does.
inline task::Task<std::string> why_not(env::Env& env, std::string text, Leaves& leaves) {
  Opened drive = co_await open_stack(env, text, leaves);
  if (!drive) co_return drive.error().text;
  co_await (*drive)->close();
  co_return "";
}

inline std::vector<std::byte> blocks_of(uint8_t value, size_t blocks, size_t block_size = 4096) {
  return std::vector<std::byte>(blocks * block_size, std::byte{value});
}

inline task::Task<void> write_bytes(Drive& drive, uint64_t block, Bytes bytes) {
  const Result<void> done = co_await drive.write(Lba(block), bytes);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().text());
}
inline task::Task<std::vector<std::byte>> read_bytes(Drive& drive, uint64_t block, size_t blocks) {
  std::vector<std::byte> bytes(blocks * drive.geometry().block_size);
  const Result<void> done = co_await drive.read(Lba(block), bytes);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().text());
  co_return bytes;
}

// Blocks of 4 KiB whose bytes are all the same.
inline task::Task<void> write_value(Drive& drive, uint64_t block, uint8_t value, size_t count = 1) {
  const std::vector<std::byte> data = blocks_of(value, count);
  co_await write_bytes(drive, block, data);
}
// The value of one; -1: it cannot be read, or its bytes differ.
inline task::Task<int> read_value(Drive& drive, uint64_t block) {
  std::vector<std::byte> data(4096);
  const Result<void> done = co_await drive.read(Lba(block), data);
  if (!done || data != blocks_of(std::to_integer<uint8_t>(data[0]), 1)) co_return -1;
  co_return std::to_integer<int>(data[0]);
}

// What a drive says of itself by that name.
inline uint64_t fact(const Drive& drive, std::string_view name) {
  for (const Fact& one : drive.facts()) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no fact " << name;
  return 0;
}

inline std::vector<std::byte> contents_of(sim::Medium& medium) {
  std::vector<std::byte> all(medium.size());
  medium.peek(0, all);
  return all;
}

struct Refusal {
  const char* stack;
  const char* message;  // is a part of what it says
};
// Each stack is refused, and nothing is written to the disk that they name.
inline task::Task<void> expect_refusals(env::Env& env, sim::Medium& disk,
                                        std::vector<Refusal> refusals) {
  const std::vector<std::byte> before = contents_of(disk);
  for (const auto& [stack, message] : refusals) {
    SourceLeaves leaves;
    const std::string why = co_await why_not(env, stack, leaves);
    EXPECT_NE(why.find(message), std::string::npos) << stack << ": " << why;
  }
  EXPECT_EQ(before, contents_of(disk));
}

}  // namespace cairn::drive
