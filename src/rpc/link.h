// SPDX-License-Identifier: Apache-2.0
// Link: frames both ways over one stream, until the peer is gone, silent or makes no sense.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/wire_format.h"
#include "stream/receiver.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::rpc {

struct LinkOptions {
  // Heard nothing for so long: it pings. So often without an answer: the peer is gone.
  Duration ping_interval = 1_s;
  uint32_t pings_max = 2;
  // For a frame that has begun to arrive in full, and for what is sent to make progress.
  Duration message_timeout = 10_s;
  // Bytes that wait to be sent; beyond it receive() waits too, so that a peer which does not take
  // its answers is not heard either. 0: no limit, for an end that sends only what it was granted.
  size_t queue_max = 0;
};

struct Frame {
  FrameHead head;
  std::string body;
};

// One core. Pings are answered, and noticed missing, from the first receive() on.
class Link {
 public:
  Link(env::Env& env, std::unique_ptr<env::Stream> stream, const LinkOptions& options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Bodies that are larger end the link; the limit of a greeting until this is called.
  void set_body_max(size_t bytes) { body_max_ = bytes; }

  // The next frame that is neither ping nor pong. One call at a time. kCorrupt: not this protocol;
  // kUnsupported: TLS; kReset: damaged, or the peer is gone or silent. An error ends the link,
  // unless the peer never sent a frame: then it can still be told something.
  task::Task<Result<Frame>> receive();
  // The first one. When the token is requested the link ends.
  task::Task<Result<Frame>> receive_greeting(task::CancelToken token);
  // receive() fails from now on; what is queued is still sent.
  void stop_receiving() { stop_receiving_.request(Errc::kClosed); }
  // Queues it. After the end it goes nowhere.
  void send(const FrameHead& head, std::string body = {});

  // Ends everything under way, soon. The first reason counts.
  void end(Error reason);
  bool is_over() const { return over_.has_value(); }
  // Why; asked after the end.
  const Error& error() const { return *over_; }
  // Requested at the end: for whoever waits for something of this link.
  task::CancelToken stop_token() { return stop_.token(); }

  // The first bytes that were no frame, for whoever has to tell what else it is.
  Bytes strange_bytes() const { return Bytes(strange_).first(strange_size_); }

  // In good order when nothing ended it before: what is queued is sent, and the peer has a moment
  // to take it. Once, with no receive() under way; before destruction.
  task::Task<void> close();

 private:
  struct Outgoing {
    FrameKind kind;
    std::array<std::byte, kHeadSize> head;
    std::string body;
    size_t size() const { return head.size() + body.size(); }
  };
  struct Tick : task::Timer {
    using Timer::Timer;
    Link* link = nullptr;
  };

  task::Task<void> send_queue();
  task::Task<Result<void>> fill(size_t count);
  task::Task<Result<Frame>> read_frame();
  Result<Frame> note_strange(Error error);
  // False: the frame is the caller's.
  bool answer_itself(const FrameHead& head);
  size_t gather(std::array<Bytes, 64>& pieces, size_t& count) const;
  void drop_sent(size_t bytes);
  void on_tick();
  task::Task<void> say_goodbye();

  env::Env& env_;
  const LinkOptions options_;
  std::unique_ptr<env::Stream> stream_;
  stream::Receiver receiver_;
  size_t body_max_ = kHelloBodyMax;

  std::deque<Outgoing> queue_;
  size_t sent_of_front_ = 0;
  size_t queued_bytes_ = 0;
  bool has_pong_queued_ = false;
  bool is_closing_ = false;
  bool is_broken_ = false;  // a write failed
  task::Event queued_;      // something is, or it closes
  task::Event drained_;

  Tick tick_;
  bool heard_ = false;                  // since the last tick
  bool is_paused_ = false;              // receive() waits for the queue
  uint32_t pings_ = 0;                  // that were not answered
  Time reading_since_ = Time::never();  // a frame that has begun
  Time writing_since_ = Time::never();

  std::array<std::byte, 16> strange_{};
  size_t strange_size_ = 0;
  bool has_received_ = false;  // a whole frame
  std::optional<Error> over_;
  task::CancelSource stop_;
  task::CancelSource stop_receiving_{stop_.token()};
  task::Gate gate_;
};

}  // namespace cairn::rpc
