// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/server.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "base/once_per_reason.h"
#include "door/vfio_user/message.h"
#include "env/call.h"
#include "env/sharing.h"
#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::door::vfio_user {

namespace {

// How long a client that finds a device in use may take to hear so.
constexpr Duration kRefusalTimeout = 1_s;
// A client that comes right after another has left may be seen before that is: for so long it waits
// for the other to begin to leave, and then for the device.
constexpr Duration kNoticeTimeout = 100_ms;
constexpr Duration kTurnTimeout = 10_s;
// Clients that wait for one device; others are told at once that it is in use.
constexpr size_t kWaitingMax = 4;

}  // namespace

// A device at its socket. Lives on the server's core; `session` is touched on the device's alone.
struct VfioUserServer::Endpoint {
  std::string name;
  DeviceMaker maker;
  SessionOptions options;
  CoreId core;
  std::unique_ptr<env::Listener> listener;
  task::CancelSource stop;  // of accepting
  task::Gate accepting;
  task::Gate clients;
  task::Semaphore turn{1};  // of having the device
  size_t waiting = 0;       // clients that have not had theirs
  bool is_used = false;
  bool is_leaving = false;
  Session* session = nullptr;
};

// What one core has of a server. Made and destroyed on that core.
class VfioUserServer::PerCore {
 public:
  PerCore(env::Env& env, const SessionOptions& options)
      : env_(env), options_(options), glances_(env) {}

  // The life of one client.
  task::Task<void> serve(Endpoint& endpoint, env::Connection connection) {
    env::Sharing& sharing = *env::sharing(env_);
    Result<std::unique_ptr<env::LocalStream>> stream = sharing.open_local(std::move(connection));
    if (!stream) co_return;
    SessionOptions options = endpoint.options;
    options.log = [this](std::string_view text) { say(text); };
    Session session(env_, sharing, glances_, options);
    endpoint.session = &session;
    co_await session.run(**stream, endpoint.maker);
    endpoint.session = nullptr;
  }
  // Whether the device's client leaves, or has left: known soon.
  task::Task<bool> is_being_left(const Endpoint& endpoint) {
    if (endpoint.session == nullptr) co_return true;
    task::Deadline deadline(env_, env_.now() + kNoticeTimeout, env_.stop_token());
    const Result<void> leaving = co_await endpoint.session->leaving().wait(deadline.token());
    co_return leaving.has_value();
  }
  // Says EBUSY to whatever the client says first.
  task::Task<void> turn_away(std::string device, env::Connection connection) {
    env::Sharing& sharing = *env::sharing(env_);
    Result<std::unique_ptr<env::LocalStream>> stream = sharing.open_local(std::move(connection));
    if (!stream) co_return;
    task::Deadline deadline(env_, env_.now() + kRefusalTimeout, env_.stop_token());
    Message message;
    const Result<void> read = co_await read_message(**stream, message, deadline.token());
    if (!read) co_return;
    OutgoingMessage refusal;
    refusal.header = {.id = message.header.id,
                      .command = message.header.command,
                      .size = {},
                      .flags = kTypeReply | kError,
                      .error = uint32_t{EBUSY}};
    MessageWriter writer(**stream);
    const Result<void> written = co_await writer.write(std::move(refusal), deadline.token());
    if (written) {
      say("a vfio-user client of " + device + " was turned away: the device has another client");
    }
  }

 private:
  void say(std::string_view text) {
    if (!options_.log) return;
    const std::optional<std::string> more = lines_.take(text, env_.now());
    if (more) options_.log(std::string(text) + *more);
  }

  env::Env& env_;
  const SessionOptions& options_;
  Glances glances_;
  OncePerReason lines_;
};

VfioUserServer::VfioUserServer(env::Env& env, SessionOptions options)
    : env_(env), options_(std::move(options)), cores_(env.core_count()) {}

VfioUserServer::~VfioUserServer() = default;

VfioUserServer::PerCore& VfioUserServer::on(env::Env& there) {
  std::unique_ptr<PerCore>& mine = cores_[there.core().value()];
  if (mine == nullptr) mine = std::make_unique<PerCore>(there, options_);
  return *mine;
}

Result<void> VfioUserServer::add(std::string name, const env::Address& at, DeviceMaker maker,
                                 Pace pace) {
  if (env::sharing(env_) == nullptr) {
    return fail(Errc::kUnsupported, "vfio-user in a world that shares nothing");
  }
  if (at.family != env::Address::Family::kLocal) {
    return fail(Errc::kInvalid, "vfio-user at an address that is no local socket");
  }
  const bool is_taken =
      std::ranges::any_of(endpoints_, [&](const auto& endpoint) { return endpoint->name == name; });
  if (is_taken) return fail(Errc::kExists, "a vfio-user device of that name");
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at, {});
  if (!listener) return fail(listener.error());
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->name = std::move(name);
  endpoint->maker = std::move(maker);
  endpoint->options = options_;
  endpoint->options.pace = pace;
  endpoint->options.device = endpoint->name;
  endpoint->core = CoreId(next_core_++ % env_.core_count());
  endpoint->listener = std::move(*listener);
  endpoint->accepting.spawn(accept_loop(*endpoint));
  endpoints_.push_back(std::move(endpoint));
  return {};
}

task::Task<void> VfioUserServer::accept_loop(Endpoint& endpoint) {
  while (!endpoint.stop.requested()) {
    Result<env::Connection> connection = co_await endpoint.listener->accept(endpoint.stop.token());
    if (connection) {
      endpoint.clients.spawn(admit(endpoint, std::move(*connection)));
    } else if (connection.error() == Errc::kLimit) {
      const Result<void> slept = co_await task::sleep_for(env_, 50_ms, endpoint.stop.token());
      if (!slept) co_return;
    } else {
      co_return;
    }
  }
}

task::Task<void> VfioUserServer::admit(Endpoint& endpoint, env::Connection connection) {
  const bool has_turn = co_await take_turn(endpoint);
  if (has_turn) {
    co_await serve(endpoint, std::move(connection));
    endpoint.turn.release();
  } else {
    co_await turn_away(endpoint.name, std::move(connection));
  }
}

task::Task<bool> VfioUserServer::take_turn(Endpoint& endpoint) {
  if (endpoint.turn.try_acquire()) co_return true;
  if (endpoint.waiting == kWaitingMax) co_return false;
  ++endpoint.waiting;
  task::Deadline deadline(env_, env_.now() + kTurnTimeout, endpoint.stop.token());
  bool has_turn = co_await env::call_on(
      env_, endpoint.core, [&](env::Env& there) { return on(there).is_being_left(endpoint); });
  if (has_turn) {
    const Result<void> taken = co_await endpoint.turn.acquire(1, deadline.token());
    has_turn = taken.has_value();
  }
  --endpoint.waiting;
  co_return has_turn;
}

task::Task<void> VfioUserServer::serve(Endpoint& endpoint, env::Connection connection) {
  endpoint.is_used = true;
  ++clients_;
  co_await env::call_on(env_, endpoint.core, [&](env::Env& there) {
    return on(there).serve(endpoint, std::move(connection));
  });
  --clients_;
  endpoint.is_used = false;
  left_.set();
}

task::Task<void> VfioUserServer::turn_away(std::string device, env::Connection connection) {
  co_await on(env_).turn_away(std::move(device), std::move(connection));
}

task::Task<void> VfioUserServer::stop_accepting(Endpoint& endpoint) {
  if (endpoint.stop.requested()) co_return;
  endpoint.stop.request();
  co_await endpoint.accepting.close();
  endpoint.listener = nullptr;
}

// `visit` is called with the session, if there is one, on its core.
task::Task<void> VfioUserServer::tell(Endpoint& endpoint, void (*visit)(Session&)) {
  co_await env::call_on(env_, endpoint.core, [&](env::Env&) {
    if (endpoint.session != nullptr) visit(*endpoint.session);
  });
}

task::Task<void> VfioUserServer::await_departure(const Endpoint* endpoint, Time until) {
  // Whoever ends the process does not wait for one guest to give its device back.
  task::Deadline deadline(env_, until,
                          endpoint != nullptr ? env_.stop_token() : task::CancelToken());
  while (endpoint != nullptr ? endpoint->is_used : clients_ > 0) {
    left_.reset();
    const Result<void> changed = co_await left_.wait(deadline.token());
    if (!changed) co_return;
  }
}

task::Task<Result<void>> VfioUserServer::remove(std::string_view name, Time until) {
  const auto found = std::ranges::find_if(endpoints_, [&](const auto& endpoint) {
    return endpoint->name == name && !endpoint->is_leaving;
  });
  if (found == endpoints_.end()) co_return fail(Errc::kNotFound, "a vfio-user device of that name");
  Endpoint& endpoint = **found;
  endpoint.is_leaving = true;
  co_await stop_accepting(endpoint);
  co_await tell(endpoint, [](Session& session) {
    if (!session.ask_back()) session.stop();
  });
  co_await await_departure(&endpoint, until);
  co_await tell(endpoint, [](Session& session) { session.abort(); });
  co_await endpoint.clients.close();
  std::erase_if(endpoints_, [&](const auto& each) { return each.get() == &endpoint; });
  left_.set();
  co_return Result<void>{};
}

task::Task<void> VfioUserServer::drain(Time until) {
  for (const auto& endpoint : endpoints_) {
    co_await stop_accepting(*endpoint);
    co_await tell(*endpoint, [](Session& session) { session.stop(); });
  }
  co_await await_departure(nullptr, until);
}

task::Task<void> VfioUserServer::close() {
  for (const auto& endpoint : endpoints_) {
    co_await stop_accepting(*endpoint);
    co_await tell(*endpoint, [](Session& session) { session.abort(); });
  }
  for (const auto& endpoint : endpoints_) co_await endpoint->clients.close();
  endpoints_.clear();
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    co_await env::call_on(env_, CoreId(i), [this, i](env::Env&) { cores_[i].reset(); });
  }
}

}  // namespace cairn::door::vfio_user
