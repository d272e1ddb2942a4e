// SPDX-License-Identifier: Apache-2.0
// A load of so many requests at a time, for tests that count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "lanes/lane_test.h"
#include "task/when_all.h"

namespace cairn::lane_tests {

struct Load {
  size_t depth = 1;
  uint64_t rounds = 1;  // requests of each worker
  bool writes = false;
};

inline Task<void> work(RemoteDrive& drive, Load load, size_t index) {
  const Lba lba(index);
  std::vector<std::byte> data = random_bytes(kBlock, index);
  const std::vector<std::byte> expected = data;
  for (uint64_t i = 0; i < load.rounds; ++i) {
    Result<void> done;
    if (load.writes) {
      done = co_await drive.write(lba, data);
    } else {
      done = co_await drive.read(lba, data);
    }
    EXPECT_OK(done);
  }
  if (!load.writes) co_return;
  const Result<void> got = co_await drive.read(lba, data);
  EXPECT_OK(got);
  EXPECT_EQ(data, expected);
}

// Workers on blocks of their own, so many at once.
inline Task<void> put_load(RemoteDrive& drive, Load load) {
  std::vector<Task<void>> workers;
  for (size_t i = 0; i < load.depth; ++i) workers.push_back(work(drive, load, i));
  co_await task::when_all(std::move(workers));
}

}  // namespace cairn::lane_tests
