// SPDX-License-Identifier: Apache-2.0
// Session: the transmission phase of one connection, from its first request to its last reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "door/common/export.h"
#include "door/nbd/options.h"
#include "door/nbd/outbox.h"
#include "door/nbd/wire_format.h"
#include "env/env.h"
#include "env/stream.h"
#include "stream/buffer_queue.h"
#include "stream/receiver.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::nbd {

// What client and server have agreed on.
struct Agreement {
  Export* served = nullptr;
  bool structured = false;  // replies
  bool allocation = false;  // base:allocation can be asked for
};
// Under which number replies speak of base:allocation.
inline constexpr uint32_t kAllocationId = 1;

// One request, as it came.
struct NbdRequest {
  uint16_t flags = 0;
  Command command = Command::kRead;
  uint64_t cookie = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
  bool has(uint16_t flag) const { return (flags & flag) != 0; }
};

// Requests are served side by side and answered as they are done. Memory is the session's own: a
// client that does not read its replies holds up nobody else.
class Session {
 public:
  Session(env::Env& env, env::Stream& stream, stream::Receiver& receiver,
          const Agreement& agreement, const NbdOptions& options);

  // Until the client has gone, broke the protocol, or stop() or drain() was called; every request
  // that was taken has ended then.
  task::Task<void> run();
  // Takes no more requests; run() ends when those in flight were answered.
  void drain() { reading_.request(); }
  // Ends the connection at once.
  void stop();
  // Since when nothing was asked for and nothing is under way; none: something is.
  std::optional<Time> idle_since() const;

 private:
  using Part = Outbox::Part;

  // False: the client says goodbye.
  task::Task<Result<bool>> take_request();
  task::Task<Result<void>> take_write(NbdRequest request);
  task::Task<Result<void>> take_pieces(NbdRequest request);
  task::Task<void> serve(NbdRequest request);
  task::Task<void> serve_write(NbdRequest request, Buffer room);
  task::Task<void> serve_read(NbdRequest request);
  task::Task<Result<void>> read_chunks(NbdRequest request, MutableBytes room);
  task::Task<Result<void>> read_plain(NbdRequest request, MutableBytes room);
  task::Task<Result<void>> send_data(NbdRequest request, uint64_t offset, Bytes data, bool is_last);
  task::Task<Result<void>> tell_failed_read(NbdRequest request, uint64_t offset, Error error);
  task::Task<void> serve_status(NbdRequest request);
  task::Task<void> find_extents(NbdRequest request, std::vector<StatusExtent>& extents);
  task::Task<Result<void>> warm(NbdRequest request);
  task::Task<void> answer(NbdRequest request, Result<void> done);
  // How a request ended.
  struct Outcome {
    NbdError error = NbdError::kNone;  // success
    const char* why = "";
  };
  task::Task<void> answer_outcome(NbdRequest request, Outcome outcome);
  // Why a request cannot be served, if so.
  Outcome check(const NbdRequest& request) const;
  void release_slot();

  env::Env& env_;
  env::Stream& stream_;
  stream::Receiver& receiver_;
  const Agreement agreement_;
  Export& export_;
  Duration stall_;
  BufferPool pool_;
  stream::BufferQueue buffers_;
  Outbox outbox_;
  task::Semaphore slots_;
  Time last_request_;
  task::CancelSource reading_;
  task::Gate requests_;
};

}  // namespace cairn::door::nbd
