// SPDX-License-Identifier: Apache-2.0
#include "fabric/target/target.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "env/call.h"
#include "fabric/target/tls_entrance.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "tls/context.h"

namespace cairn::fabric {

namespace {

// How long a host may take to end its side of a connection that we have ended.
constexpr Duration kFarewell = 1_s;

task::Task<void> nothing() { co_return; }

void keep_busiest(std::vector<TargetLane>& lanes, size_t max) {
  const auto rank = [](const TargetLane& lane) {
    return std::tuple(UINT64_MAX - lane.work.traffic.out.messages, lane.peer.text());
  };
  std::ranges::sort(lanes, {}, rank);
  if (lanes.size() > max) lanes.resize(max);
}

}  // namespace

// What one core has of a target: its connections. Made and destroyed on that core.
class Target::PerCore {
 public:
  PerCore(env::Env& env, nvme::Registry& registry, stream::Reception& reception, CoreId control,
          const TargetOptions& options)
      : in_capsule_pool_(
            {.classes = {{4096, kInCapsuleBuffers}, {kInCapsuleMax, kInCapsuleBuffersLarge}}}),
        in_capsule_(env, in_capsule_pool_),
        unproven_pool_({.classes = {{4096, kUnprovenBuffers},
                                    {nvme::kDiscoveryTransferBytesMax, kUnprovenBuffersLarge}}}),
        unproven_(env, unproven_pool_),
        buffers_(env, env.buffers()),
        core_{env,       registry,    control,  options, buffers_,
              unproven_, in_capsule_, drained_, lanes_,  reception} {}

  // The life of one connection.
  task::Task<void> serve(env::Connection connection, Arrival arrival,
                         stream::Reception::Visitor& visitor) {
    if (stopping_.requested()) co_return;
    std::unique_ptr<env::Stream> stream = core_.env.open(std::move(connection));
    const env::Address peer = stream->peer();
    const bool admitted = co_await env::call_on(
        core_.env, core_.control, [&](env::Env&) { return core_.reception.admit(visitor, peer); });
    if (!admitted || stopping_.requested()) co_return;
    Guest guest(stopping_.token());
    visitor.end = [&guest] { guest.end(); };
    co_await serve_guest(guest, std::move(stream), arrival, visitor);
    visitor.end = nullptr;
  }
  // Takes no more commands; done when those of I/O queues were answered, or `until` has passed.
  task::Task<void> quiesce(Time until) {
    stopping_.request();
    members_.for_each([](Member& member) { member.connection.drain(); });
    const auto is_busy = [](TargetConnection& connection) {
      return !connection.is_admin() && !connection.is_idle();
    };
    co_await wait_while(is_busy, until);
  }
  // Ends admin queues, or all others, in good order; done when they are gone or at `until`.
  task::Task<void> finish(bool admin, Time until) {
    members_.for_each([admin](Member& member) {
      if (member.connection.is_admin() == admin) member.connection.finish();
    });
    const auto is_left = [admin](TargetConnection& connection) {
      return connection.is_admin() == admin;
    };
    co_await wait_while(is_left, until);
  }
  // Adds what is here; keeps the busiest lanes only.
  void report(TargetReport& into, size_t lanes_max) {
    for (const auto& [key, totals] : lanes_.accounts()) into.totals[key].add(totals);
    members_.for_each([&](Member& member) {
      const TargetLane& lane = into.lanes.emplace_back(member.connection.lane());
      // What others do counts when it is known for which subsystem.
      if (lane.key.is_connected()) into.totals[lane.key].work.add(lane.work);
    });
    keep_busiest(into.lanes, lanes_max);
  }
  void stop() {
    stopping_.request();
    members_.for_each([](Member& member) { member.connection.stop("the target is closing"); });
  }

 private:
  struct Member : ListHook<> {
    explicit Member(TargetConnection& its) : connection(its) {}
    TargetConnection& connection;
  };
  // A connection that may have to make room for another.
  struct Guest {
    explicit Guest(task::CancelToken token) : entering(token) {}
    void end() {
      entering.request();
      if (connection != nullptr)
        connection->stop("another connection of its address has its place");
    }
    task::CancelSource entering;  // through TLS
    TargetConnection* connection = nullptr;
  };
  task::Task<void> serve_guest(Guest& guest, std::unique_ptr<env::Stream> stream, Arrival arrival,
                               stream::Reception::Visitor& visitor) {
    TargetConnection::Origin origin{
        .listener = arrival.listener, .visitor = visitor, .tls = nullptr};
    if (arrival.channel == Channel::kPlain) {
      co_await serve_stream(guest, std::move(stream), std::move(origin));
      co_return;
    }
    if (tls_ == nullptr) tls_ = std::make_unique<tls::Context>(tls::Role::kServer);
    task::Gate lingering;
    TlsEntrance entrance(core_, *tls_, guest.entering.token());
    std::optional<SecureStream> secure = co_await entrance.admit(std::move(stream), lingering);
    if (secure && !guest.entering.requested()) {
      origin.tls = std::move(secure->identity);
      co_await serve_stream(guest, std::move(secure->stream), std::move(origin));
    }
    secure.reset();
    co_await lingering.close();
  }
  task::Task<void> serve_stream(Guest& guest, std::unique_ptr<env::Stream> stream,
                                TargetConnection::Origin origin) {
    TargetConnection served(core_, std::move(stream), std::move(origin));
    Member member(served);
    members_.push_back(member);
    guest.connection = &served;
    co_await served.run();
    guest.connection = nullptr;
    member.unlink();
    drained_.set();
  }
  // Until no connection is so, or `until` has passed.
  template <class F>
  task::Task<void> wait_while(F is_so, Time until) {
    task::Deadline deadline(core_.env, until);
    for (;;) {
      bool some = false;
      members_.for_each([&](Member& member) { some = some || is_so(member.connection); });
      if (!some) co_return;
      drained_.reset();
      const Result<void> changed = co_await drained_.wait(deadline.token());
      if (!changed) co_return;
    }
  }

  BufferPool in_capsule_pool_;
  stream::BufferQueue in_capsule_;
  BufferPool unproven_pool_;
  stream::BufferLines unproven_;
  stream::BufferLines buffers_;
  task::Event drained_;  // something is no longer in flight, or a member is gone
  LaneBook lanes_;
  TargetCore core_;
  List<Member> members_;
  std::unique_ptr<tls::Context> tls_;  // made when it is needed first
  task::CancelSource stopping_;
};

Target::Target(env::Env& env, nvme::Registry& registry, const TargetOptions& options)
    : env_(env),
      registry_(registry),
      options_(options),
      cores_(env.core_count()),
      reception_(env, options.connections, options.on_refused) {}

Target::~Target() = default;

Result<env::Address> Target::listen(const env::Address& at, Channel channel) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at, {});
  if (!listener) return fail(listener.error());
  const env::Address local = (*listener)->local();
  const auto number = static_cast<uint32_t>(addresses_.size());
  addresses_.push_back(local);
  listeners_.push_back(std::move(*listener));
  accepting_.spawn(accept_loop(*listeners_.back(), {number, channel}));
  return local;
}

task::Task<void> Target::accept_loop(env::Listener& listener, Arrival arrival) {
  while (!stop_.requested()) {
    Result<env::Connection> connection = co_await listener.accept(stop_.token());
    if (connection) {
      gate_.spawn(serve(std::move(*connection), arrival));
    } else if (connection.error() == Errc::kLimit) {
      // Out of descriptors: connections wait in the backlog until some are free.
      const Result<void> slept = co_await task::sleep_for(env_, 50_ms, stop_.token());
      if (!slept) co_return;
    } else {
      co_return;
    }
  }
}

task::Task<void> Target::serve(env::Connection connection, Arrival arrival) {
  const uint32_t core = next_core_++ % env_.core_count();
  stream::Reception::Visitor visitor{CoreId(core)};
  co_await env::call_on(env_, CoreId(core), [&](env::Env& there) {
    std::unique_ptr<PerCore>& mine = cores_[core];
    if (mine == nullptr) {
      mine = std::make_unique<PerCore>(there, registry_, reception_, env_.core(), options_);
    }
    return mine->serve(std::move(connection), arrival, visitor);
  });
  co_await reception_.leave(visitor);
}

task::Task<void> Target::stop_accepting() {
  if (stop_.requested()) co_return;
  stop_.request();
  co_await accepting_.close();
  listeners_.clear();
}

task::Task<void> Target::drain(Time until) {
  co_await stop_accepting();
  co_await on_cores([until](PerCore& core) { return core.quiesce(until); });
  // A host gives a controller up when any of its connections ends, hence only now; and what it
  // was not yet told when the admin queue ends, it counts as lost.
  for (const bool admin : {false, true}) {
    const Time farewell = std::min(until, env_.now() + kFarewell);
    co_await on_cores([admin, farewell](PerCore& core) { return core.finish(admin, farewell); });
  }
  // Those that have ended are about to leave.
  co_await reception_.await_departures(std::min(until, env_.now() + kFarewell));
}

template <class F>
task::Task<void> Target::on_cores(F function) {
  std::vector<task::Task<void>> calls;
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    calls.push_back(env::call_on(env_, CoreId(core), [this, core, &function](env::Env&) {
      return cores_[core] == nullptr ? nothing() : function(*cores_[core]);
    }));
  }
  co_await task::when_all(std::move(calls));
}

task::Task<TargetReport> Target::report(size_t lanes_max) {
  TargetReport report{
      .listeners = addresses_, .open = connections(), .refused = reception_.refused()};
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    co_await env::call_on(env_, CoreId(core), [&](env::Env&) {
      if (cores_[core] != nullptr) cores_[core]->report(report, lanes_max);
    });
  }
  co_return report;
}

task::Task<void> Target::close() {
  co_await stop_accepting();
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    co_await env::call_on(env_, CoreId(core), [&](env::Env&) {
      if (cores_[core] != nullptr) cores_[core]->stop();
    });
  }
  co_await gate_.close();
  co_await reception_.close();
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    co_await env::call_on(env_, CoreId(core), [&](env::Env&) { cores_[core].reset(); });
  }
}

}  // namespace cairn::fabric
