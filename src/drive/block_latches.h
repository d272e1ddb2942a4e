// SPDX-License-Identifier: Apache-2.0
// BlockLatches: blocks in memory that several cores copy from and to, each whole.
//
// The only words outside the back ends that several cores change. Messages cannot do it: a medium
// in memory is there so that every core reaches it without asking another, and a copy of a block
// takes less time than a message. So whoever copies a block holds its latch meanwhile, which is
// never longer than that copy: no holder waits for anything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace cairn::drive {

// Readers of a block share its latch, a writer has it alone. Blocks far apart share latches, so one
// core holds one at a time, or all of them. Used by all cores.
class BlockLatches {
 public:
  enum class Mode : uint8_t { kShared, kAlone };

  void enter(uint64_t block, Mode mode) { enter(latch_of(block), mode); }
  void leave(uint64_t block, Mode mode) { leave(latch_of(block), mode); }
  // Every block, alone.
  void enter_all() {
    for (Latch& latch : latches_) enter(latch, Mode::kAlone);
  }
  void leave_all() {
    for (Latch& latch : latches_) leave(latch, Mode::kAlone);
  }

 private:
  static constexpr size_t kLatches = 64;
  static constexpr size_t kLine = 64;
  static constexpr int kLooks = 128;  // before the thread lets others run: the holder may be one
  static constexpr uint32_t kAlone = uint32_t{1} << 31;
  struct alignas(kLine) Latch {
    std::atomic<uint32_t> word = 0;  // how many share it, or kAlone
  };

  Latch& latch_of(uint64_t block) { return latches_[block % kLatches]; }
  static bool try_enter(Latch& latch, Mode mode) {
    uint32_t seen = latch.word.load(std::memory_order_relaxed);
    if (mode == Mode::kAlone ? seen != 0 : seen >= kAlone) return false;
    return latch.word.compare_exchange_strong(seen, mode == Mode::kAlone ? kAlone : seen + 1,
                                              std::memory_order_acquire, std::memory_order_relaxed);
  }
  static void enter(Latch& latch, Mode mode) {
    for (int looks = 0; !try_enter(latch, mode); ++looks) {
      if (looks >= kLooks) std::this_thread::yield();
    }
  }
  static void leave(Latch& latch, Mode mode) {
    if (mode == Mode::kAlone) {
      latch.word.store(0, std::memory_order_release);
    } else {
      latch.word.fetch_sub(1, std::memory_order_release);
    }
  }

  std::array<Latch, kLatches> latches_;
};

}  // namespace cairn::drive
