// SPDX-License-Identifier: Apache-2.0
// Commands that make and delete queues in the host's memory (NVMe Base 2.0, 5.4 to 5.8).
#include "base/check.h"
#include "env/call.h"
#include "nvme/controller/attachment.h"
#include "nvme/controller/registry_parts.h"
#include "task/sync.h"

namespace cairn::nvme {

namespace {

// An answer of the transport, or success.
Answer answer_of(Status status) { return {.status = status}; }

}  // namespace

task::Task<Answer> QueueCommands::execute(Controller& controller, const Sqe& sqe) {
  task::Semaphore& turn = controller.attachment->turn;
  const Result<void> waited = co_await turn.acquire();
  CHECK(waited.has_value(), "nobody cancels this wait");
  Answer answer = refused(StatusCode::kInvalidOpcode);
  switch (sqe.admin_opcode()) {
    case AdminOpcode::kCreateCompletionQueue:
      answer = co_await create_completion_queue(controller, sqe);
      break;
    case AdminOpcode::kCreateSubmissionQueue:
      answer = co_await create_submission_queue(controller, sqe);
      break;
    case AdminOpcode::kDeleteCompletionQueue:
      answer = co_await delete_completion_queue(controller, sqe);
      break;
    case AdminOpcode::kDeleteSubmissionQueue:
      answer = co_await delete_submission_queue(controller, sqe);
      break;
    case AdminOpcode::kDoorbellBufferConfig:
      answer = co_await use_doorbell_buffers(controller, sqe);
      break;
    default:
      break;
  }
  turn.release();
  co_return answer;
}

task::Task<Answer> QueueCommands::create_completion_queue(Controller& controller, const Sqe& sqe) {
  Attachment& attachment = *controller.attachment;
  const CompletionQueueFields fields = CompletionQueueFields::decode(sqe);
  Status status = attachment.book.judge(fields, controller.features.queues_granted());
  if (!status.ok()) co_return answer_of(status);
  status = co_await env::call_on(env_, attachment.core, [&](env::Env&) {
    return attachment.queues.create_completion_queue(fields);
  });
  if (status.ok()) attachment.book.add(fields);
  co_return answer_of(status);
}

task::Task<Answer> QueueCommands::create_submission_queue(Controller& controller, const Sqe& sqe) {
  Attachment& attachment = *controller.attachment;
  const SubmissionQueueFields fields = SubmissionQueueFields::decode(sqe);
  Status status = attachment.book.judge(fields, controller.features.queues_granted());
  if (!status.ok()) co_return answer_of(status);
  const HostId host = controller.host();
  QueueLink* link = nullptr;
  status = co_await env::call_on(env_, attachment.core, [&](env::Env&) {
    return attachment.queues.create_submission_queue(fields, host, link);
  });
  if (!status.ok()) co_return answer_of(status);
  attachment.book.add(fields);
  controller.add_queue(fields.id, attachment.core, *link, false);
  co_return answered();
}

task::Task<Answer> QueueCommands::delete_completion_queue(Controller& controller, const Sqe& sqe) {
  Attachment& attachment = *controller.attachment;
  const uint16_t id = DeleteQueueFields::decode(sqe).id;
  const Status status = attachment.book.judge_deletion_of_completion(id);
  if (!status.ok()) co_return answer_of(status);
  co_await env::call_on(env_, attachment.core, [&attachment, id](env::Env&) {
    attachment.queues.delete_completion_queue(id);
  });
  attachment.book.remove_completion(id);
  co_return answered();
}

task::Task<Answer> QueueCommands::delete_submission_queue(Controller& controller, const Sqe& sqe) {
  Attachment& attachment = *controller.attachment;
  const uint16_t id = DeleteQueueFields::decode(sqe).id;
  const Status status = attachment.book.judge_deletion_of_submission(id);
  if (!status.ok()) co_return answer_of(status);
  co_await env::call_on(env_, attachment.core, [&attachment, id](env::Env&) {
    return attachment.queues.drain_submission_queue(id);
  });
  co_await controller.remove_io_queue(id);
  co_await env::call_on(env_, attachment.core, [&attachment, id](env::Env&) {
    attachment.queues.delete_submission_queue(id);
  });
  attachment.book.remove_submission(id);
  co_return answered();
}

task::Task<Answer> QueueCommands::use_doorbell_buffers(Controller& controller, const Sqe& sqe) {
  Attachment& attachment = *controller.attachment;
  const DoorbellBuffers buffers = DoorbellBuffers::decode(sqe);
  const bool aligned = is_aligned(buffers.doorbells, kPageSizeMin) &&
                       is_aligned(buffers.event_indexes, kPageSizeMin);
  if (!aligned || buffers.doorbells == buffers.event_indexes) {
    co_return refused(StatusCode::kInvalidField);
  }
  const Status status = co_await env::call_on(env_, attachment.core, [&](env::Env&) {
    return attachment.queues.use_doorbell_buffers(buffers);
  });
  co_return answer_of(status);
}

task::Task<void> QueueCommands::tell_interrupts(Controller& controller,
                                                const SetFeaturesFields& fields) {
  Attachment& attachment = *controller.attachment;
  co_await env::call_on(env_, attachment.core, [&](env::Env&) {
    if (fields.feature == Feature::kInterruptCoalescing) {
      attachment.queues.set_coalescing(InterruptCoalescing::decode(fields.value));
    } else {
      attachment.queues.set_vector(InterruptVector::decode(fields.value));
    }
  });
}

}  // namespace cairn::nvme
