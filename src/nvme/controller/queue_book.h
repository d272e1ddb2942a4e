// SPDX-License-Identifier: Apache-2.0
// QueueBook: which I/O queues a driver has made, and which of its wishes for others are refused
// (NVMe Base 2.0, 5.4 to 5.7).
#pragma once

#include <cstdint>
#include <map>

#include "nvme/format/pci_format.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

class QueueBook {
 public:
  struct Limits {
    uint16_t entries_max = 128;  // MQES, one-based
    uint16_t vectors = 1;        // interrupt vectors of the function
  };
  explicit QueueBook(const Limits& limits) : limits_(limits) {}

  // Success, or why the command is refused, with DNR. `granted`: queues of each kind, by the
  // feature Number of Queues. Nothing is noted yet.
  Status judge(const CompletionQueueFields& fields, uint16_t granted) const;
  Status judge(const SubmissionQueueFields& fields, uint16_t granted) const;
  Status judge_deletion_of_completion(uint16_t id) const;
  Status judge_deletion_of_submission(uint16_t id) const;

  // What was judged has been done.
  void add(const CompletionQueueFields& fields) { completion_.emplace(fields.id, 0); }
  void add(const SubmissionQueueFields& fields);
  void remove_completion(uint16_t id) { completion_.erase(id); }
  void remove_submission(uint16_t id);
  void clear();

  bool is_empty() const { return completion_.empty() && submission_.empty(); }

 private:
  Status judge_size(uint16_t size, bool contiguous, uint64_t address) const;

  Limits limits_;
  std::map<uint16_t, uint32_t> completion_;  // how many submission queues complete to each
  std::map<uint16_t, uint16_t> submission_;  // and to which
};

}  // namespace cairn::nvme
