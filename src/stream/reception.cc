// SPDX-License-Identifier: Apache-2.0
#include "stream/reception.h"

#include "env/call.h"
#include "task/deadline.h"

namespace cairn::stream {

bool Reception::admit(Visitor& visitor, const env::Address& peer) {
  const env::ConnectionSlots::Entry entry = slots_.enter(visitor, peer, env_.now());
  if (entry.refused != nullptr) {
    ++refused_;
    note(peer, entry.refused);
    return false;
  }
  visitor.peer_ = peer;
  if (entry.evicted != nullptr) gate_.spawn(end(static_cast<Visitor&>(*entry.evicted)));
  return true;
}

task::Task<void> Reception::end(Visitor& visitor) {
  if (!visitor.calls_.enter()) co_return;
  note(visitor.peer_, "it has proven nothing, and others of its address want to come in");
  co_await env::call_on(env_, visitor.core_, [&visitor](env::Env&) {
    if (visitor.end) visitor.end();
  });
  visitor.calls_.leave();
}

task::Task<void> Reception::leave(Visitor& visitor) {
  slots_.leave(visitor);
  left_.set();
  co_await visitor.calls_.close();
}

task::Task<void> Reception::await_departures(Time until) {
  task::Deadline deadline(env_, until);
  while (connections() > 0) {
    left_.reset();
    const Result<void> left = co_await left_.wait(deadline.token());
    if (!left) co_return;
  }
}

void Reception::note(const env::Address& peer, const char* why) {
  if (on_refused_) on_refused_({.peer = peer, .why = why});
}

}  // namespace cairn::stream
