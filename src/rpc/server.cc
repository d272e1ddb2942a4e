// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <utility>

#include "rpc/wire_format.h"
#include "task/deadline.h"
#include "tls/stream.h"

namespace cairn::rpc {

namespace {

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

Server::Server(env::Env& env, Service& service, ServerOptions options)
    : env_(env), services_({&service}), options_(std::move(options)), slots_(options_.connections) {
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

task::Task<void> Server::await_departures() {
  task::Deadline deadline(env_, env_.now() + options_.drain_timeout);
  while (!guests_.empty()) {
    left_.reset();
    const Result<void> left = co_await left_.wait(deadline.token());
    if (!left) co_return;
  }
}

task::Task<void> Server::close() {
  stop_.request(Errc::kClosed);
  for (Guest* guest : std::vector<Guest*>(guests_)) {
    if (guest->visit != nullptr) guest->visit->drain();
  }
  co_await await_departures();
  for (Guest* guest : std::vector<Guest*>(guests_)) {
    if (guest->visit != nullptr) guest->visit->end(Errc::kClosed);
  }
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

void Server::note(const Guest& guest, std::string identity, std::string why) {
  if (!options_.on_refused) return;
  options_.on_refused({.peer = guest.peer,
                       .name = guest.client ? guest.client->name : "",
                       .identity = std::move(identity),
                       .why = std::move(why)});
}

void Server::evict(Guest& guest) {
  note(guest, "", "it has proven nothing, and others of its address want to come in");
  guest.ending.request();
  if (guest.visit != nullptr) guest.visit->end(Errc::kCancelled);
}

bool Server::admit(Guest& guest) {
  const env::ConnectionSlots::Entry entry = slots_.enter(guest, guest.peer, env_.now());
  if (entry.refused != nullptr) {
    note(guest, "", entry.refused);
    return false;
  }
  if (entry.evicted != nullptr) evict(static_cast<Guest&>(*entry.evicted));
  return true;
}

void Server::prove(Guest& guest) {
  if (!std::exchange(guest.is_proven, true)) slots_.prove(guest, env_.now());
}

task::Task<void> Server::serve(env::Connection connection) {
  Guest guest(stop_.token());
  std::unique_ptr<env::Stream> stream = env_.open(std::move(connection));
  guest.peer = stream->peer();
  // One too many is dropped, which its client sees.
  if (!admit(guest)) co_return;
  guests_.push_back(&guest);
  if (tls_) stream = co_await secure(guest, std::move(stream));
  if (stream != nullptr && !guest.ending.requested()) {
    co_await serve_stream(guest, std::move(stream));
  }
  stream.reset();
  slots_.leave(guest);
  co_await guest.lingering.close();
  std::erase(guests_, &guest);
  left_.set();
}

task::Task<void> Server::serve_stream(Guest& guest, std::unique_ptr<env::Stream> stream) {
  // Neither is a coroutine, and both end before their captures do.
  VisitHooks hooks{
      .on_greeted = [this, &guest] { prove(guest); },
      .on_refused = [this, &guest](std::string why) { note(guest, "", std::move(why)); }};
  Visit visit(env_, services_, std::move(stream), guest.client, options_.visit, std::move(hooks));
  guest.visit = &visit;
  co_await visit.serve();
  guest.visit = nullptr;
}

task::Task<std::unique_ptr<env::Stream>> Server::secure(Guest& guest,
                                                        std::unique_ptr<env::Stream> plain) {
  Offered offered(*options_.clients);
  tls::PskKeeper& keeper = offered;
  auto stream =
      std::make_unique<tls::TlsStream>(env_, std::move(plain), *tls_, keeper, guest.lingering);
  const Result<void> done =
      co_await stream->shake_hands(options_.visit.hello_timeout, guest.ending.token());
  if (done) {
    guest.client = options_.clients->client_of(stream->identity());
    prove(guest);
    co_return std::move(stream);
  }
  const tls::HandshakeReport& report = stream->report();
  const bool is_plain = looks_plain(Bytes(report.first).first(report.first_size));
  const bool is_said = done.error() == Errc::kCancelled || done.error() == Errc::kClosed;
  if (!is_said) {
    note(guest, offered.identity(),
         is_plain ? "it speaks without TLS, and this server demands it" : done.error().what());
  }
  co_return nullptr;
}

}  // namespace cairn::rpc
