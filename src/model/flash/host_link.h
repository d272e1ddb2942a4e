// SPDX-License-Identifier: Apache-2.0
// The host's queue pairs and the link between host and drive.
#pragma once

#include <cstdint>
#include <vector>

#include "model/flash/shared.h"

namespace cairn::flash {

// Told of each completion; may submit further requests at once.
class CompletionSink {
 public:
  virtual void completed(const Completion& completion) = 0;

 protected:
  ~CompletionSink() = default;
};

// Takes requests that are in the drive, with their data if they write.
class RequestSink {
 public:
  virtual void start_request(uint32_t request) = 0;

 protected:
  ~RequestSink() = default;
};

// Each direction carries one message at a time. A request waits in the host while its submission
// queue is full, then in that queue until the drive fetches it, at most queue_fetch at once.
class HostLink {
 public:
  HostLink(Shared& shared, RequestSink& sink);

  // A request of the host, now.
  void submit(const HostRequest& request);

  // When the next message arrives: in the drive, in the host.
  Moment next_down() const { return down_.next(); }
  Moment next_up() const { return up_.next(); }
  // That message arrives; it is now.
  void arrive_down();
  void arrive_up(CompletionSink& sink);

  // The drive may be done with the request: it is when nothing of it is left.
  void finish_if_done(uint32_t request) {
    const RequestState& state = requests_[request];
    if (state.pages_left + state.dram_sectors + state.programs_left == 0) finish(request);
  }
  // The drive is done with the request: its data and its completion travel to the host.
  void finish(uint32_t request);

  // Power failed: nothing is on the link, and the queues are empty.
  void clear();

 private:
  enum class Message : uint8_t {
    kDoorbell,
    kCompletionDoorbell,
    kFetchEntry,
    kEntry,
    kFetchData,
    kWriteData,
    kReadData,
    kCompletion,
  };
  struct Job {
    Message message = Message::kDoorbell;
    uint32_t request = kNone;  // of a doorbell: the stream
  };
  struct Stream {
    Fifo waiting;    // in the host: its submission queue is full
    Fifo submitted;  // entries the drive has not fetched
    uint64_t tail = 0;
    uint64_t head_known = 0;  // to the host
    uint64_t head = 0;        // entries that arrived in the drive
    uint64_t visible = 0;     // submitted entries whose doorbell arrived
    uint64_t fetched = 0;
    uint32_t in_drive = 0;
  };

  bool has_room(const Stream& stream) const {
    return stream.tail - stream.head_known < parameters_.queue_depth - 1;
  }
  void ring(uint32_t request);
  void fetch(uint32_t stream);
  void begin(uint32_t request);
  void delivered_to_drive(const Job& job);
  void delivered_to_host(const Job& job, CompletionSink& sink);
  void to_drive(Message message, uint32_t about, Nanos duration);
  void to_host(Message message, uint32_t about, Nanos duration);

  const Parameters& parameters_;
  const Geometry& geometry_;
  const Timing& timing_;
  const std::vector<Domain>& domains_;
  const PageTable& pages_;
  Clock& clock_;
  EventHeap& events_;
  Counters& counters_;
  Pool<RequestState>& requests_;
  RequestSink& sink_;

  Server<Job> down_;
  Server<Job> up_;
  std::vector<Stream> streams_;
};

}  // namespace cairn::flash
