// SPDX-License-Identifier: Apache-2.0
#include "door/resp/server.h"

#include <array>
#include <utility>

#include "base/bytes.h"
#include "base/list.h"
#include "door/resp/session.h"
#include "stream/accept.h"
#include "task/deadline.h"

namespace cairn::door::resp {

using Visitor = stream::Reception::Visitor;

namespace {

// A client is counted by the door itself, whose maximum can change; those without a password yet
// are watched by the reception: they make room for each other.
constexpr env::ConnectionLimits kLimits{
    .connections_max = 1 << 20, .unproven_max = 4096, .reserved = 512};

constexpr std::string_view kNoPlace = "-ERR max number of clients reached\r\n";

// A server with a certificate has no keys that are shared before.
class NoKeys final : public tls::PskKeeper {
 public:
  task::Task<Result<tls::Psk>> choose(std::vector<std::string>) override {
    co_return fail(Errc::kDenied, "no pre-shared key is known here");
  }
};

// In a list with the session for as long as it runs.
struct CountedClient {
  CountedClient(DoorState& its_door, env::Env& env, const env::Stream& stream) : door(its_door) {
    state.id = ++door.last_client_id;
    state.address = stream.peer().text();
    state.local_address = stream.local().text();
    state.since = state.last_used = env.now();
    state.is_authenticated = !door.options.password;
    state.is_secure = door.options.certificate != nullptr;
    door.clients.push_back(state);
    ++door.client_count;
    ++door.stats.connections_received;
  }
  ~CountedClient() { --door.client_count; }
  CountedClient(const CountedClient&) = delete;
  CountedClient& operator=(const CountedClient&) = delete;

  DoorState& door;
  ClientState state;
};

}  // namespace

struct RespServer::Member : ListHook<> {
  explicit Member(Session& its) : session(its) {}
  Session& session;
};

RespServer::RespServer(env::Env& env, kv::Keyspace& keys, const RespOptions& options)
    : env_(env), door_(env, keys, options), reception_(env, kLimits, options.on_refused) {
  if (options.certificate != nullptr) tls_ = std::make_unique<tls::Context>(*options.certificate);
}

RespServer::~RespServer() = default;

Result<env::Address> RespServer::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at, {});
  if (!listener) return fail(listener.error());
  env::Address local = (*listener)->local();
  if (listeners_.empty()) {
    door_.port = local.port;
    const std::string text = local.text();
    door_.config.note_address(text.substr(0, text.rfind(':')), local.port);
  }
  listeners_.push_back(std::move(*listener));
  accepting_.spawn(stream::accept_each(
      env_, *listeners_.back(), stop_.token(),
      [this](env::Connection connection) { gate_.spawn(serve(std::move(connection))); }));
  return local;
}

bool RespServer::admit(env::Stream& stream, Visitor& visitor) {
  const bool has_place = door_.client_count < door_.config.clients_max();
  if (has_place && reception_.admit(visitor, stream.peer())) return true;
  ++door_.stats.connections_rejected;
  // One that does not take it in at once does without.
  const std::array<Bytes, 1> pieces = {as_bytes(kNoPlace)};
  if (tls_ == nullptr) {
    [[maybe_unused]] const Result<size_t> sent = stream.write_now(pieces);
  }
  return false;
}

task::Task<void> RespServer::serve(env::Connection connection) {
  std::unique_ptr<env::Stream> stream = env_.open(std::move(connection));
  Visitor visitor(env_.core());
  if (admit(*stream, visitor)) {
    CountedClient client(door_, env_, *stream);
    visitor.end = [&client] { client.state.end.request(); };
    if (ending_.requested()) client.state.end.request();
    if (tls_ != nullptr) {
      co_await serve_secure(std::move(stream), client.state, visitor);
    } else {
      co_await serve_stream(*stream, client.state, visitor);
    }
    visitor.end = nullptr;
  }
  stream.reset();
  co_await reception_.leave(visitor);
}

task::Task<void> RespServer::serve_secure(std::unique_ptr<env::Stream> stream, ClientState& client,
                                          Visitor& visitor) {
  NoKeys keeper;
  task::Gate lingering;
  {
    tls::TlsStream secure(env_, std::move(stream), *tls_, keeper, lingering);
    const Result<void> shaken =
        co_await secure.shake_hands(tls::kHandshakeTimeout, client.end.token());
    if (shaken) {
      co_await serve_stream(secure, client, visitor);
    } else if (door_.options.on_refused && shaken.error() != Errc::kCancelled) {
      door_.options.on_refused({.peer = secure.peer(), .why = shaken.error().what()});
    }
  }
  co_await lingering.close();
}

task::Task<void> RespServer::serve_stream(env::Stream& stream, ClientState& client,
                                          Visitor& visitor) {
  Session session(door_, client, stream, [this, &visitor] { reception_.prove(visitor); });
  Member member(session);
  members_.push_back(member);
  if (stop_.requested()) session.drain();
  co_await session.run();
  member.unlink();
  left_.set();
}

task::Task<void> RespServer::stop_accepting() {
  if (stop_.requested()) co_return;
  stop_.request();
  co_await accepting_.close();
  listeners_.clear();
}

task::Task<void> RespServer::drain(Time until) {
  co_await stop_accepting();
  members_.for_each([](Member& member) { member.session.drain(); });
  task::Deadline deadline(env_, until);
  while (!members_.empty()) {
    left_.reset();
    const Result<void> changed = co_await left_.wait(deadline.token());
    if (!changed) co_return;
  }
}

task::Task<void> RespServer::close() {
  co_await stop_accepting();
  ending_.request();
  door_.clients.for_each([](ClientState& client) { client.end.request(); });
  co_await gate_.close();
  co_await reception_.close();
}

}  // namespace cairn::door::resp
