// SPDX-License-Identifier: Apache-2.0
// Flight: pieces of a transfer on their way, a bounded number, ended in the order they began.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "env/env.h"
#include "env/memory.h"
#include "task/task.h"

namespace cairn::apps {

// Each piece has its own memory, which it may use from start() until its take(). Used by one task,
// and empty when destroyed: drain() after an error.
class Flight {
 public:
  static constexpr uint32_t kPieces = 16;
  static constexpr uint64_t kPieceSize = 512 << 10;

  // kLimit: no memory, 8 MiB in all.
  static Result<std::unique_ptr<Flight>> make(env::Env& env) {
    Result<std::unique_ptr<env::Memory>> memory = env.map_memory(kPieces * kPieceSize);
    if (!memory) return fail(memory.error());
    return std::unique_ptr<Flight>(new Flight(std::move(*memory)));
  }

  bool is_full() const { return begun_ - taken_ == kPieces; }
  bool is_empty() const { return begun_ == taken_; }
  // Of the piece that begins next, and of the one that is taken next.
  MutableBytes next_memory() const { return memory_of(begun_); }
  MutableBytes oldest_memory() const { return memory_of(taken_); }

  void start(task::Task<Result<void>> piece) {
    CHECK(!is_full());
    pieces_[begun_++ % kPieces] = std::move(piece);
  }
  // Waits for the oldest. Its memory stays as it is until start() fills the flight again.
  task::Task<Result<void>> take() {
    Result<void> result = co_await pieces_[taken_ % kPieces];
    ++taken_;
    co_return result;
  }
  task::Task<void> drain() {
    while (!is_empty()) {
      [[maybe_unused]] const Result<void> ignored = co_await take();
    }
  }

 private:
  explicit Flight(std::unique_ptr<env::Memory> memory) : memory_(std::move(memory)) {}
  MutableBytes memory_of(uint64_t index) const {
    return memory_->bytes().subspan(index % kPieces * kPieceSize, kPieceSize);
  }

  std::unique_ptr<env::Memory> memory_;
  std::array<task::Task<Result<void>>, kPieces> pieces_;
  uint64_t begun_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace cairn::apps
