// SPDX-License-Identifier: Apache-2.0
#include "meta/server.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/bytes.h"
#include "env/io.h"
#include "task/deadline.h"
#include "tls/stream.h"

namespace cairn::meta {

namespace {

// The result of a call as an answer of the protocol.
template <class T>
Result<Answer> as_answer(Result<T> result) {
  if (!result) return fail(result.error());
  if constexpr (std::is_void_v<T>) {
    return Answer(std::monostate());
  } else {
    return Answer(std::move(*result));
  }
}

const char* verb(Call call) {
  switch (call) {
    case Call::kCommit:
      return "commit";
    case Call::kCompact:
      return "compact";
    case Call::kGrant:
    case Call::kKeepAlive:
    case Call::kRevoke:
      return "hold leases";
    default:
      return "read";
  }
}

// Finds the key of a client that shakes hands, and remembers what it offered.
class Offered final : public tls::PskKeeper {
 public:
  explicit Offered(const ClientKeys& clients) : clients_(clients) {}
  task::Task<Result<tls::Psk>> choose(std::vector<std::string> identities) override {
    if (!identities.empty()) identity_ = identities.front();
    co_return clients_.choose(identities);
  }
  const std::string& identity() const { return identity_; }

 private:
  const ClientKeys& clients_;
  std::string identity_;
};

}  // namespace

Server::Server(env::Env& env, Store& store, ServerOptions options)
    : env_(env), store_(store), options_(std::move(options)), slots_(options_.connections) {
  if (options_.clients != nullptr) tls_.emplace(tls::Role::kServer);
}

Server::~Server() = default;

Result<env::Address> Server::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at);
  if (!listener) return fail(listener.error());
  listeners_.push_back(std::move(*listener));
  gate_.spawn(accept_all(*listeners_.back()));
  return listeners_.back()->local();
}

task::Task<void> Server::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  listeners_.clear();
}

task::Task<void> Server::accept_all(env::Listener& listener) {
  while (!stop_.requested()) {
    Result<env::Connection> connection = co_await listener.accept(stop_.token());
    if (connection) {
      gate_.spawn(serve(std::move(*connection)));
    } else if (connection.error() == Errc::kLimit) {
      [[maybe_unused]] const Result<void> waited =
          co_await task::sleep_for(env_, 100_ms, stop_.token());
    } else {
      co_return;
    }
  }
}

void Server::note(const Visit& visit, std::string identity, std::string why) {
  if (!options_.on_refused) return;
  options_.on_refused({.peer = visit.peer,
                       .name = visit.client ? visit.client->name : "",
                       .identity = std::move(identity),
                       .why = std::move(why)});
}

bool Server::admit(Visit& visit) {
  const env::ConnectionSlots::Entry entry = slots_.enter(visit, visit.peer, env_.now());
  if (entry.refused != nullptr) {
    note(visit, "", entry.refused);
    return false;
  }
  if (entry.evicted != nullptr) {
    auto& evicted = static_cast<Visit&>(*entry.evicted);
    note(evicted, "", "it has proven nothing, and others of its address want to come in");
    evicted.ending.request();
  }
  return true;
}

void Server::prove(Visit& visit) {
  if (!std::exchange(visit.is_proven, true)) slots_.prove(visit, env_.now());
}

task::Task<void> Server::serve(env::Connection connection) {
  Visit visit(stop_.token());
  std::unique_ptr<env::Stream> stream = env_.open(std::move(connection));
  visit.peer = stream->peer();
  // One too many is dropped, which its client sees.
  if (!admit(visit)) co_return;
  co_await serve_stream(visit, std::move(stream));
  slots_.leave(visit);
  co_await visit.lingering.close();
}

task::Task<void> Server::serve_stream(Visit& visit, std::unique_ptr<env::Stream> stream) {
  if (tls_) stream = co_await secure(visit, std::move(stream));
  bool goes_on = stream != nullptr;
  while (goes_on && !visit.ending.requested()) goes_on = co_await serve_one(visit, *stream);
}

task::Task<std::unique_ptr<env::Stream>> Server::secure(Visit& visit,
                                                        std::unique_ptr<env::Stream> plain) {
  Offered offered(*options_.clients);
  tls::PskKeeper& keeper = offered;
  auto stream =
      std::make_unique<tls::TlsStream>(env_, std::move(plain), *tls_, keeper, visit.lingering);
  const Result<void> done =
      co_await stream->shake_hands(options_.message_timeout, visit.ending.token());
  if (done) {
    visit.client = options_.clients->client_of(stream->identity());
    prove(visit);
    co_return std::move(stream);
  }
  const tls::HandshakeReport& report = stream->report();
  const bool is_plain = looks_plain(Bytes(report.first).first(report.first_size));
  const bool is_said = done.error() == Errc::kCancelled || done.error() == Errc::kClosed;
  if (!is_said) {
    note(visit, offered.identity(),
         is_plain ? "it speaks without TLS, and this server demands it" : done.error().what());
  }
  co_return nullptr;
}

// Bytes that are no request. A client that speaks TLS is told in a way that it understands.
task::Task<void> Server::turn_away(Visit& visit, env::Stream& stream, Bytes head) {
  if (!looks_encrypted(head)) {
    note(visit, "", "it sent what is no request of this protocol");
    co_return;
  }
  note(visit, "", "it speaks TLS, and this server has no keys");
  task::Deadline deadline(env_, env_.now() + tls::kGoodbye, visit.ending.token());
  const std::string frame = encode_refusal(Call::kGet, Errc::kUnsupported);
  const Result<void> said = co_await stream.write(as_bytes(frame), deadline.token());
  if (!said || !stream.finish()) co_return;
  std::array<std::byte, 512> ignored;
  for (bool goes_on = true; goes_on;) {
    const Result<size_t> got = co_await stream.read(ignored, deadline.token());
    goes_on = got && *got > 0;
  }
}

task::Task<bool> Server::serve_one(Visit& visit, env::Stream& stream) {
  std::array<std::byte, kFrameHeadSize> head{};
  {
    const Time until = visit.is_proven ? Time::never() : env_.now() + options_.message_timeout;
    task::Deadline deadline(env_, until, visit.ending.token());
    const Result<size_t> begun =
        co_await stream.read(MutableBytes(head).first(1), deadline.token());
    if (!begun || *begun == 0) co_return false;
  }
  std::string body;
  Result<FrameHead> found = fail(Errc::kCorrupt, "");
  {
    task::Deadline deadline(env_, env_.now() + options_.message_timeout, visit.ending.token());
    const Result<void> rest =
        co_await env::read_exactly(stream, MutableBytes(head).subspan(1), deadline.token());
    if (!rest) co_return false;
    found = decode_head(head);
    if (!found || found->is_answer) {
      co_await turn_away(visit, stream, head);
      co_return false;
    }
    body.resize(found->length);
    const Result<void> all = co_await env::read_exactly(
        stream, std::as_writable_bytes(std::span(body)), deadline.token());
    if (!all || !check_body(head, as_bytes(body))) co_return false;
  }
  Result<Request> request = decode_request(found->call, as_bytes(body));
  if (!request) co_return false;
  prove(visit);
  const Result<Answer> answered = co_await answer_client(visit, std::move(*request));
  std::string frame = answered ? encode(found->call, *answered)
                               : encode_refusal(found->call, answered.error().code());
  if (frame.size() > kFrameHeadSize + kFrameBodyMax) {
    frame = encode_refusal(found->call, Errc::kLimit);
  }
  task::Deadline deadline(env_, env_.now() + options_.message_timeout, stop_.token());
  const Result<void> written = co_await stream.write(as_bytes(frame), deadline.token());
  co_return written.has_value();
}

task::Task<Result<Answer>> Server::answer_client(Visit& visit, Request request) {
  const Call call = call_of(request);
  if (visit.client && !may(visit.client->role, call)) {
    note(visit, "",
         fmt::format("it may not {}: its role is {}", verb(call), text(visit.client->role)));
    co_return fail(Errc::kDenied, "its role does not allow it");
  }
  co_return co_await answer(std::move(request));
}

task::Task<Result<Answer>> Server::answer(Request request) {
  const task::CancelToken token = stop_.token();
  switch (call_of(request)) {
    case Call::kGet: {
      auto result = co_await store_.get(std::move(std::get<GetRequest>(request).key), token);
      co_return as_answer(std::move(result));
    }
    case Call::kList: {
      auto result = co_await store_.list(std::move(std::get<ListOptions>(request)), token);
      co_return as_answer(std::move(result));
    }
    case Call::kCommit: {
      auto result = co_await store_.commit(std::move(std::get<Batch>(request)), token);
      co_return as_answer(std::move(result));
    }
    case Call::kGrant: {
      auto result = co_await store_.grant(std::get<GrantRequest>(request).ttl, token);
      co_return as_answer(std::move(result));
    }
    case Call::kKeepAlive: {
      auto result = co_await store_.keep_alive(std::get<KeepAliveRequest>(request).lease, token);
      co_return as_answer(std::move(result));
    }
    case Call::kRevoke: {
      auto result = co_await store_.revoke(std::get<RevokeRequest>(request).lease, token);
      co_return as_answer(std::move(result));
    }
    case Call::kCompact: {
      auto result = co_await store_.compact(std::get<CompactRequest>(request).upto, token);
      co_return as_answer(std::move(result));
    }
    case Call::kPoll:
      break;
  }
  co_return co_await poll(std::move(std::get<PollRequest>(request)));
}

task::Task<Result<Answer>> Server::poll(PollRequest request) {
  Result<std::unique_ptr<Watch>> watch =
      co_await store_.watch(std::move(request.range), request.from, stop_.token());
  if (!watch) co_return fail(watch.error());
  Result<std::vector<Change>> changes;
  if (request.from != Revision()) {
    task::Deadline deadline(env_, env_.now() + options_.poll_wait, stop_.token());
    changes = co_await (*watch)->next(deadline.token());
    if (!changes && deadline.expired()) changes = std::vector<Change>();
  }
  const Revision position = (*watch)->position();
  co_await (*watch)->close();
  if (!changes) co_return fail(changes.error());
  co_return Answer(PollAnswer{std::move(*changes), position});
}

}  // namespace cairn::meta
