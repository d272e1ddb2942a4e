// SPDX-License-Identifier: Apache-2.0
// A range taken in pieces: a bounded number on their way at once, ended in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/nvme/flight.h"
#include "apps/nvme/progress.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/problem.h"
#include "task/task.h"

namespace cairn::apps {

struct PieceWork {
  uint64_t piece_size = Flight::kPieceSize;  // or less
  // Begins the piece that is `done` bytes into the range and as long as `memory`.
  std::function<task::Task<Result<void>>(uint64_t done, MutableBytes memory)> start;
  // The piece succeeded: what to do with its bytes, one piece at a time. May be empty.
  std::function<task::Task<Attempt<void>>(uint64_t done, MutableBytes memory)> ended;
  // "reading 64 KiB at byte 4096", for the Problem of a piece that failed.
  std::function<std::string(uint64_t done, uint64_t length)> what;
};

// Works through `length` bytes. After the first piece that fails none begins; all have ended when
// this returns.
task::Task<Attempt<void>> work_pieces(Flight& flight, uint64_t length, PieceWork work,
                                      Progress& progress);

// "reading 64 KiB at byte 4096".
std::string piece_text(const char* verb, uint64_t length, uint64_t offset);

}  // namespace cairn::apps
