// SPDX-License-Identifier: Apache-2.0
// Legs: the drives that a redundant service keeps its data on, and those that wait beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "service/raid/leg.h"
#include "task/task.h"

namespace cairn::drive {

// One of the drives below, by its number, that was not there at the start or could not be read.
struct AbsentDrive {
  size_t index = 0;
  std::unique_ptr<Drive> drive;  // null: it could not be opened
};

class Legs {
 public:
  using State = Leg::State;

  std::vector<Leg> members;                    // in the order of the labels
  std::vector<std::unique_ptr<Drive>> spares;  // blank
  std::vector<AbsentDrive> absent;             // may turn out to be legs, or blank
  std::vector<std::unique_ptr<Drive>> unused;  // of no use any more, to be closed
  size_t refused = 0;                          // came later, and hold something else
  std::vector<size_t> foreign;                 // of these, which of the drives below
  // The drives below as they were handed in, by their number; null: not there yet. Only compared.
  std::vector<const Drive*> given;

  size_t size() const { return members.size(); }
  Leg& operator[](size_t leg) { return members[leg]; }
  const Leg& operator[](size_t leg) const { return members[leg]; }
  auto begin() { return members.begin(); }
  auto end() { return members.end(); }
  auto begin() const { return members.begin(); }
  auto end() const { return members.end(); }

  size_t count(State state) const;
  bool are_whole() const { return count(State::kGood) == size(); }
  bool is_written(size_t leg) const {
    return members[leg].drive != nullptr && members[leg].state != State::kLost;
  }
  // Whether one is stale, and no label says so yet.
  bool have_news() const;

  // Incarnation::local_opening of those that are there, together.
  uint64_t local_opening() const;

  // Which of the drives below it is. None: of no leg, or not there.
  std::optional<size_t> number_of(const Drive* drive) const;

  // A spare takes the place of a lost leg: it lacks everything, and the next label names it.
  void use_spare(size_t leg, uint64_t id);
  // The same with the drive that is there, which is blank.
  void begin_anew(size_t leg, uint64_t id);

  // Hands all drives back to whoever gave them.
  void give_back(std::vector<std::unique_ptr<Drive>>& below);
  task::Task<void> close();
};

// That of all drives that are there. kInvalid: they differ; kUnreachable: none is there.
Result<uint32_t> common_block_size(const std::vector<std::unique_ptr<Drive>>& drives);

}  // namespace cairn::drive
