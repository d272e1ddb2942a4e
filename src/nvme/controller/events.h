// SPDX-License-Identifier: Apache-2.0
// Events: what a controller tells its host unasked (NVMe Base 2.0, 5.2).
//
// A kind of event is told once and then kept back until the host has read its log page without
// RAE: what happens meanwhile is in that page. An event nobody waits for is told to the next
// request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "nvme/format/event_format.h"
#include "task/operation.h"

namespace cairn::nvme {

enum class EventKind : uint8_t { kNamespaces, kAna, kDiscovery, kReservation, kTemperature };
inline constexpr size_t kEventKinds = 5;

// Core-local. Every request has ended before it is destroyed: see end().
class Events {
 public:
  // Gives dword 0 of the completion. kClosed after end(); kCancelled by the token.
  class EventRequest final : public task::Operation<uint32_t>, public ListHook<Events> {
   public:
    EventRequest(Events& events, uint16_t cid, task::CancelToken token)
        : Operation(token), events_(events), cid_(cid) {}

   private:
    friend class Events;
    void start() override;
    void cancel() override;
    Events& events_;
    uint16_t cid_;
  };

  // `co_await events.next(cid, token)`: waits for the next event. Ask has_room() first.
  EventRequest next(uint16_t cid, task::CancelToken token) { return {*this, cid, token}; }
  bool has_room() const;
  // Completes the request of that command with kCancelled. False: there is none.
  bool abort(uint16_t cid);

  void raise(EventKind kind);
  // The page was read without RAE: events about it that were not told yet need not be.
  void page_was_read(LogPage page);
  // Forgets what was raised and what is kept back, and completes every request with kClosed.
  void reset();
  // The same, also for requests still to come.
  void end();

 private:
  enum class State : uint8_t {
    kQuiet,
    kRaised,  // waits for a request
    kTold,    // waits for its page to be read
  };
  void deliver();

  std::array<State, kEventKinds> states_{};
  List<EventRequest, Events> requests_;
  size_t waiting_ = 0;
  bool ended_ = false;
};

}  // namespace cairn::nvme
