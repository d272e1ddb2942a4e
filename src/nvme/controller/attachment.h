// SPDX-License-Identifier: Apache-2.0
// Attachment: what a controller has that was attached, not connected: a transport that holds the
// host's memory and its queues, such as PCI, and the book of those queues.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "nvme/controller/queue_book.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/pci_format.h"
#include "nvme/format/status_format.h"
#include "nvme/reservation/reservation_view.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::nvme {

class QueueLink;

// The transport's side of admin commands that concern queues in the host's memory. What arrives
// here was judged. Every call is made on the transport's core; one at a time.
class PciQueues {
 public:
  // Success, or why the memory cannot be used. Then there is no such queue.
  virtual Status create_completion_queue(const CompletionQueueFields& fields) = 0;
  // The same; on success `link` is the queue's, and lives until the queue is deleted or the
  // controller has been reset. Its commands are those of `host`.
  virtual Status create_submission_queue(const SubmissionQueueFields& fields, const HostId& host,
                                         QueueLink*& link) = 0;
  // Takes nothing more from it; done when each of its commands was completed, aborted if need be.
  // After that the registry lets go of its link, and then it is deleted.
  virtual task::Task<void> drain_submission_queue(uint16_t id) = 0;
  virtual void delete_submission_queue(uint16_t id) = 0;
  // No submission queue completes to it.
  virtual void delete_completion_queue(uint16_t id) = 0;
  // Success, or why the memory cannot be used.
  virtual Status use_doorbell_buffers(const DoorbellBuffers& buffers) = 0;
  virtual void set_coalescing(InterruptCoalescing coalescing) = 0;
  virtual void set_vector(InterruptVector vector) = 0;

 protected:
  ~PciQueues() = default;
};

struct Attachment {
  Attachment(CoreId where, PciQueues& to, const QueueBook::Limits& limits)
      : core(where), queues(to), book(limits) {}
  CoreId core;
  PciQueues& queues;
  QueueBook book;
  task::Semaphore turn{1};  // commands that change queues take theirs
};

}  // namespace cairn::nvme
