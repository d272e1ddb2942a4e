// SPDX-License-Identifier: Apache-2.0
// Memory that changes while requests use it, as a guest's does: whoever lends it here finds words
// of it overwritten between any two events of the simulator, and around every request of a leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/rng.h"
#include "drive/drive.h"
#include "drive/filter_drive.h"
#include "env/env.h"
#include "task/task.h"
#include "testing/stack/files.h"

namespace cairn::stack {

class Scribbler {
  struct Lent {
    uint64_t first = 0;  // block of the drive
    MutableBytes memory;
    bool is_read = false;
  };

 public:
  // What is written into block `block` of a drive: a word that names it, another each time. A word
  // of kPoison names none: it goes into the memory of readers, and never to a drive.
  static constexpr uint64_t kPoison = UINT64_MAX;
  static uint64_t word_of(uint64_t block, uint64_t time) { return block << 32 | time; }
  static bool names(uint64_t word, uint64_t block) { return word >> 32 == block; }

  Scribbler(uint64_t seed, uint32_t block_size) : rng_(seed), block_size_(block_size) {}

  // Memory of a request from `first` on, from here to the end of the object.
  class Loan {
   public:
    Loan(Scribbler& scribbler, uint64_t first, MutableBytes memory, bool is_read)
        : scribbler_(scribbler) {
      scribbler.lent_.push_front({.first = first, .memory = memory, .is_read = is_read});
      self_ = scribbler.lent_.begin();
    }
    ~Loan() { scribbler_.lent_.erase(self_); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    Scribbler& scribbler_;
    std::list<Lent>::iterator self_;
  };

  // Overwrites some words of all that is lent.
  void scribble();
  // Until the memory is lent no more.
  task::Task<void> keep_scribbling(env::Env& env, const bool& is_over);
  // Whether a leaf was asked to read into memory that was lent for reading.
  bool has_leaf_read_into_it() const { return has_leaf_read_into_it_; }
  void leaf_begins(const drive::DriveOp& op);

 private:
  friend class Loan;
  Rng rng_;
  uint32_t block_size_;
  uint64_t time_ = 1;
  std::list<Lent> lent_;
  bool has_leaf_read_into_it_ = false;
};

// Sources as tests have them, with a scribble before and after each of their requests. Those that
// services look into (flash:) are as they are.
class ScribbledLeaves final : public drive::Leaves {
 public:
  explicit ScribbledLeaves(Scribbler& scribbler)
      : scribbler_(scribbler), inner_({{"drive.key", drive::testing_key(1)}}) {}
  task::Task<Leaf> open(env::Env& env, std::string text) override;
  task::Task<Leaf> open_shared(env::Env& env, std::string text) override {
    return inner_.open_shared(env, std::move(text));
  }
  void gone(const drive::Drive* drive) override;
  std::expected<drive::FileContent, std::string> read_file(const std::string& path) override {
    return inner_.read_file(path);
  }

 private:
  Scribbler& scribbler_;
  drive::LeavesWithFiles inner_;
  std::map<const drive::Drive*, const drive::Drive*> wrapped_;
};

}  // namespace cairn::stack
