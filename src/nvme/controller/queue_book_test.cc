// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/queue_book.h"

#include <gtest/gtest.h>

namespace cairn::nvme {
namespace {

class QueueBookTest : public ::testing::Test {
 protected:
  static constexpr uint16_t kGranted = 4;
  QueueBook book{{.entries_max = 128, .vectors = 3}};

  static CompletionQueueFields completion(uint16_t id) {
    return {.id = id, .size = 127, .vector = 2, .address = 0x1000};
  }
  static SubmissionQueueFields submission(uint16_t id, uint16_t to) {
    return {.id = id, .size = 127, .completion = to, .address = 0x1000};
  }
  StatusCode judged(const CompletionQueueFields& fields) {
    return book.judge(fields, kGranted).code();
  }
  StatusCode judged(const SubmissionQueueFields& fields) {
    return book.judge(fields, kGranted).code();
  }
};

TEST_F(QueueBookTest, CompletionQueueWithinTheLimitsIsAccepted) {
  EXPECT_EQ(judged(completion(1)), StatusCode::kSuccess);
  EXPECT_EQ(judged(completion(4)), StatusCode::kSuccess);
}

TEST_F(QueueBookTest, CompletionQueuesAreRefusedByTheFirstThingWrong) {
  EXPECT_EQ(judged(completion(0)), StatusCode::kInvalidQueueId);
  EXPECT_EQ(judged(completion(5)), StatusCode::kInvalidQueueId);
  book.add(completion(1));
  EXPECT_EQ(judged(completion(1)), StatusCode::kInvalidQueueId);
  CompletionQueueFields fields = completion(2);
  for (const uint16_t size : {0, 128, 65535}) {
    fields.size = size;
    EXPECT_EQ(judged(fields), StatusCode::kInvalidQueueSize) << size;
  }
  fields = completion(2);
  fields.contiguous = false;
  EXPECT_EQ(judged(fields), StatusCode::kInvalidField);
  fields = completion(2);
  fields.address = 0x1008;
  EXPECT_EQ(judged(fields), StatusCode::kPrpOffsetInvalid);
  fields = completion(2);
  fields.vector = 3;
  EXPECT_EQ(judged(fields), StatusCode::kInvalidInterruptVector);
  EXPECT_TRUE(book.judge(fields, kGranted).do_not_retry());
}

TEST_F(QueueBookTest, SubmissionQueueNeedsItsCompletionQueue) {
  EXPECT_EQ(judged(submission(1, 0)), StatusCode::kInvalidQueueId);
  EXPECT_EQ(judged(submission(1, 5)), StatusCode::kInvalidQueueId);
  EXPECT_EQ(judged(submission(1, 1)), StatusCode::kCompletionQueueInvalid);
  book.add(completion(1));
  EXPECT_EQ(judged(submission(1, 1)), StatusCode::kSuccess);
  EXPECT_EQ(judged(submission(0, 1)), StatusCode::kInvalidQueueId);
  EXPECT_EQ(judged(submission(5, 1)), StatusCode::kInvalidQueueId);
  SubmissionQueueFields fields = submission(1, 1);
  fields.size = 0;
  EXPECT_EQ(judged(fields), StatusCode::kInvalidQueueSize);
  fields = submission(1, 1);
  fields.contiguous = false;
  EXPECT_EQ(judged(fields), StatusCode::kInvalidField);
  book.add(submission(1, 1));
  EXPECT_EQ(judged(submission(1, 1)), StatusCode::kInvalidQueueId);
}

TEST_F(QueueBookTest, CompletionQueueIsDeletedAfterItsSubmissionQueues) {
  EXPECT_EQ(book.judge_deletion_of_completion(1).code(), StatusCode::kInvalidQueueId);
  EXPECT_EQ(book.judge_deletion_of_submission(1).code(), StatusCode::kInvalidQueueId);
  book.add(completion(1));
  book.add(submission(1, 1));
  book.add(submission(2, 1));
  EXPECT_EQ(book.judge_deletion_of_completion(1).code(), StatusCode::kInvalidQueueDeletion);
  book.remove_submission(1);
  EXPECT_EQ(book.judge_deletion_of_completion(1).code(), StatusCode::kInvalidQueueDeletion);
  EXPECT_TRUE(book.judge_deletion_of_submission(2).ok());
  book.remove_submission(2);
  EXPECT_TRUE(book.judge_deletion_of_completion(1).ok());
  book.remove_completion(1);
  EXPECT_TRUE(book.is_empty());
}

}  // namespace
}  // namespace cairn::nvme
