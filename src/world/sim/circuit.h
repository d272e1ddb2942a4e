// SPDX-License-Identifier: Apache-2.0
// Circuit: a connection as the network sees it, two endpoints and two pipes, one per direction.
// Internal.
//
// A byte's way: accepted into the sender's buffer, sent when the receiver's window has room,
// arrived after the network's time, consumed by the reader, credited back to the sender after the
// network's time again. So a sender whose peer does not read gets exactly its own send buffer and
// the peer's receive buffer accepted, and a one-way partition stops both directions in the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "env/address.h"
#include "env/stream.h"
#include "world/sim/byte_queue.h"
#include "world/sim/event_queue.h"
#include "world/sim/fifo.h"
#include "world/sim/options.h"
#include "world/sim/process.h"
#include "world/sim/shared.h"

namespace cairn::sim {

class Circuit;
class Endpoint;
class Machine;
class Network;
class SimListener;
struct Link;

// An event that crosses a link, and waits there while the link lets nothing pass.
class Travel : public Event, public ListHook<Link> {
 public:
  using Event::Event;
  // Scheduled, or held at the link.
  bool is_under_way() const { return is_scheduled() || is_linked(); }
};

class Pipe {
 public:
  Pipe(Network& network, Endpoint& from, Endpoint& to, const env::StreamOptions& sender,
       const env::StreamOptions& receiver);
  ~Pipe() { forget_segments(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // The sender's side. append() takes up to room() bytes, transmit() moves what the window allows.
  size_t room() const {
    return static_cast<size_t>(
        std::min<uint64_t>(send_capacity_ - unsent(), cut_at_ - bytes_.end()));
  }
  void append(Bytes bytes) { bytes_.append(bytes); }
  void transmit();
  // What comes after the bytes accepted so far; the first call counts.
  enum class End : uint8_t { kNone, kFinish, kReset };
  void end_with(End end);
  // What was not sent is lost.
  void drop_unsent() { limit_ = sent_; }
  // The same, and the peer is reset after what is on its way, even when the pipe had ended.
  void abort();
  void say_hello() { send_segment(0, kHello); }
  // No byte from this position on is accepted before all others have arrived.
  void cut(uint64_t position, bool breaks) {
    cut_at_ = position;
    cut_breaks_ = breaks;
  }

  // The network's model has brought a segment here.
  void arrived(uint64_t tag);

  // What the next byte to be appended brings.
  void attach(std::vector<SharedHold> things) {
    parcels_.push_back({bytes_.end(), std::move(things)});
  }

  // The receiver's side. What was taken counts against the window until credit().
  size_t readable() const { return arrived_ - bytes_.begin(); }
  ByteQueue& bytes() { return bytes_; }
  void credit(size_t bytes);
  // What the first of the next `count` bytes that brings something brings, once; and the bytes
  // before the next that does.
  std::vector<SharedHold> take_parcel(size_t count);
  size_t until_parcel() const;

 private:
  enum Flag : uint8_t { kHello = 1, kFinish = 2, kReset = 4, kBreak = 8 };
  friend class Endpoint;
  static constexpr uint64_t kNoTag = UINT64_MAX;
  struct Segment {
    Time arrival;  // never(): the network's model does not know yet
    uint32_t bytes = 0;
    uint32_t flags = 0;
    uint64_t tag = kNoTag;  // in the model
    Duration slower;        // than the model says
  };
  struct Parcel {
    uint64_t position;  // of the byte that brings it
    std::vector<SharedHold> things;
  };
  struct Arrival : Travel {
    Arrival(const EventKind& kind, const Origin& origin, Pipe& owner)
        : Travel(kind, origin), pipe(owner) {}
    Pipe& pipe;
  };
  static const EventKind kArrival;
  static const EventKind kCredit;
  static const EventKind kGiveUp;
  static void on_arrival(Event& event);
  static void on_credit(Event& event);
  static void on_give_up(Event& event);

  size_t unsent() const { return (limit_ < bytes_.end() ? limit_ : bytes_.end()) - sent_; }
  void send_segment(uint32_t bytes, uint32_t flags);
  void schedule_arrival();
  void forget_segments();
  void send_credit_if_needed();
  void held();
  void reached_cut();
  // What is on its way never arrives. The connection may be gone afterwards.
  void lose_segments();

  Network& network_;
  Endpoint& from_;
  Endpoint& to_;
  Link& link_;
  Link& link_back_;
  const size_t send_capacity_;
  const size_t receive_capacity_;
  ByteQueue bytes_;    // from what is next to be read to what was last accepted
  uint64_t sent_ = 0;  // positions in it
  uint64_t arrived_ = 0;
  uint64_t consumed_ = 0;
  uint64_t credited_ = 0;  // of consumed_, what the sender knows
  uint64_t credit_on_its_way_ = 0;
  uint64_t limit_ = UINT64_MAX;  // nothing from here on is sent
  uint64_t cut_at_ = UINT64_MAX;
  bool cut_breaks_ = false;
  End end_ = End::kNone;
  bool is_end_sent_ = false;
  bool is_reset_sent_ = false;
  Fifo<Segment> segments_;
  std::vector<Parcel> parcels_;  // not taken yet, by position
  Time last_arrival_;
  Arrival arrival_;
  Arrival credit_;
  Arrival give_up_;
};

// One side. Owned by a Connection handle, a backlog or a stream until close().
class Endpoint final : public Mortal {
 public:
  // The program's end of it.
  class User {
   public:
    // Bytes or the end arrived; there may be room to send; it is all over.
    virtual void on_readable() = 0;
    virtual void on_room() = 0;
    virtual void on_error() = 0;

   protected:
    ~User() = default;
  };

  Endpoint(Circuit& circuit, Machine& machine, env::Address local, env::Address peer);

  Machine& machine() { return machine_; }
  Circuit& circuit() { return circuit_; }
  const env::Address& local() const { return local_; }
  const env::Address& peer() const { return peer_; }
  Pipe& in();
  Pipe& out();

  // It now belongs to `process`, or to a backlog.
  void own(Process* process);
  void set_user(User* user) { user_ = user; }
  // Its owner lets it go, in good order if nothing else happened before. It may be gone afterwards.
  void close();

  // Why nothing works any more, if so. Bytes that arrived before are still there to be read.
  const std::optional<Error>& error() const { return error_; }
  bool is_finished() const { return is_finished_; }              // this side sends no more
  bool has_peer_finished() const { return has_peer_finished_; }  // nothing will arrive any more
  void finish();
  // Ends the connection at once; what is unread is gone.
  void reset();
  // The same by the network, for both sides.
  void break_off();

  void die(Death death) override;
  const char* what() const override { return "connection"; }

 private:
  friend class Pipe;
  friend class Circuit;
  friend class Network;
  // Whether anybody is there for what arrives.
  bool is_listening() const { return !is_closed_ && !error_.has_value(); }
  void on_segment(uint32_t bytes, uint32_t flags);
  void on_room();
  void fail_with(Error error);
  // The handshake of a server's side will not be completed. It may be gone afterwards.
  void forget_if_embryo();

  Circuit& circuit_;
  Machine& machine_;
  env::Address local_;
  env::Address peer_;
  uint64_t life_;  // of the machine when it was made
  User* user_ = nullptr;
  std::optional<Error> error_;
  bool is_owned_ = false;
  bool is_embryo_ = false;  // of a server: not in a backlog yet
  bool is_closed_ = false;
  bool is_finished_ = false;
  bool has_vanished_ = false;  // by power loss: nothing is sent from here any more
  bool has_peer_finished_ = false;
};

// Freed by the network when neither side is owned.
class Circuit : public ListHook<Circuit> {
 public:
  struct Side {
    Machine& machine;
    env::Address address;
    env::StreamOptions options;
  };
  Circuit(Network& network, const Side& client, const Side& server);

  Network& network() { return network_; }
  Endpoint& client() { return client_; }
  Endpoint& server() { return server_; }
  bool joins(const Machine& a, const Machine& b) const;
  void cut(const WireCut& where) {
    (where.to_server ? to_server_ : to_client_).cut(where.position, where.breaks);
  }

 private:
  friend class Endpoint;
  Network& network_;
  Endpoint client_;
  Endpoint server_;
  Pipe to_server_;
  Pipe to_client_;
};

}  // namespace cairn::sim
