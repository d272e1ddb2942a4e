// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/queue_book.h"

#include "base/bytes.h"
#include "base/check.h"

namespace cairn::nvme {

Status QueueBook::judge_size(uint16_t size, bool contiguous, uint64_t address) const {
  if (size == 0 || size >= limits_.entries_max) return final_status(StatusCode::kInvalidQueueSize);
  // CAP.CQR: queues are contiguous.
  if (!contiguous) return final_status(StatusCode::kInvalidField);
  if (!is_aligned(address, kPageSizeMin)) return final_status(StatusCode::kPrpOffsetInvalid);
  return {};
}

Status QueueBook::judge(const CompletionQueueFields& fields, uint16_t granted) const {
  if (fields.id == 0 || fields.id > granted || completion_.contains(fields.id)) {
    return final_status(StatusCode::kInvalidQueueId);
  }
  if (Status status = judge_size(fields.size, fields.contiguous, fields.address); !status.ok()) {
    return status;
  }
  if (fields.vector >= limits_.vectors) return final_status(StatusCode::kInvalidInterruptVector);
  return {};
}

Status QueueBook::judge(const SubmissionQueueFields& fields, uint16_t granted) const {
  if (fields.id == 0 || fields.id > granted || submission_.contains(fields.id)) {
    return final_status(StatusCode::kInvalidQueueId);
  }
  // Outside the range is an identifier that is none; inside it, a queue that is not there.
  if (fields.completion == 0 || fields.completion > granted) {
    return final_status(StatusCode::kInvalidQueueId);
  }
  if (!completion_.contains(fields.completion)) {
    return final_status(StatusCode::kCompletionQueueInvalid);
  }
  return judge_size(fields.size, fields.contiguous, fields.address);
}

Status QueueBook::judge_deletion_of_completion(uint16_t id) const {
  const auto found = completion_.find(id);
  if (found == completion_.end()) return final_status(StatusCode::kInvalidQueueId);
  return found->second == 0 ? Status() : final_status(StatusCode::kInvalidQueueDeletion);
}

Status QueueBook::judge_deletion_of_submission(uint16_t id) const {
  return submission_.contains(id) ? Status() : final_status(StatusCode::kInvalidQueueId);
}

void QueueBook::add(const SubmissionQueueFields& fields) {
  const auto found = completion_.find(fields.completion);
  CHECK(found != completion_.end(), "a submission queue was judged before it was added");
  ++found->second;
  submission_.emplace(fields.id, fields.completion);
}

void QueueBook::remove_submission(uint16_t id) {
  const auto found = submission_.find(id);
  CHECK(found != submission_.end(), "a deletion was judged before");
  --completion_.at(found->second);
  submission_.erase(found);
}

void QueueBook::clear() {
  completion_.clear();
  submission_.clear();
}

}  // namespace cairn::nvme
