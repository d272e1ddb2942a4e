// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "stream/accept.h"
#include "task/deadline.h"

namespace cairn::http {

namespace {

// What is read, and thrown away, after a refusal.
constexpr size_t kLingerBytesMax = 64UL * 1024;

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7).
std::string date_text(WallTime time) {
  using std::chrono::floor;
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_time<std::chrono::nanoseconds> at{std::chrono::nanoseconds(time.ns)};
  const auto day = floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::seconds>(at - day));
  return fmt::format(
      "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(day).c_encoding()],
      static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
      static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
      clock.seconds().count());
}

std::string head_of(const Page& page, bool keep_alive, WallTime now) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: {}\r\n",
      static_cast<int>(page.status), reason(page.status), date_text(now), page.type,
      page.body.size(), keep_alive ? "keep-alive" : "close");
  if (page.status == Status::kMethodNotAllowed) head += "Allow: GET, HEAD\r\n";
  if (page.status == Status::kUnauthorized) head += "WWW-Authenticate: Bearer\r\n";
  return head + "\r\n";
}

std::string sentence(Status status) {
  return fmt::format("{} {}\n", static_cast<int>(status), reason(status));
}

}  // namespace

struct Server::Client : ListHook<> {
  Client(Server& its, env::Stream& its_stream, env::Address its_local)
      : server(its), stream(its_stream), local(std::move(its_local)), end(its.stop_.token()) {
    ++server.connections_;
  }
  ~Client() { --server.connections_; }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void wait() {
    if (!is_linked()) server.silent_.push_back(*this);
  }
  Bytes arrived() const { return Bytes(bytes).first(have); }
  void drop(size_t count) {
    std::copy(bytes.begin() + static_cast<ptrdiff_t>(count),
              bytes.begin() + static_cast<ptrdiff_t>(have), bytes.begin());
    have -= count;
  }

  Server& server;
  env::Stream& stream;
  const env::Address local;
  task::CancelSource end;
  std::array<std::byte, kRequestHeadMax> bytes{};
  size_t have = 0;  // of them, which arrived and are not used up
  uint32_t served = 0;
};

Server::Server(env::Env& env, const ServerLimits& limits) : env_(env), limits_(limits) {}
Server::~Server() = default;

Result<env::Address> Server::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at);
  if (!listener) return fail(listener.error());
  env::Address local = (*listener)->local();
  listeners_.push_back(std::move(*listener));
  accepting_.spawn(stream::accept_each(env_, *listeners_.back(), stop_.token(),
                                       [this, local](env::Connection connection) {
                                         gate_.spawn(serve(std::move(connection), local));
                                       }));
  return local;
}

task::Task<void> Server::close() {
  stop_.request();
  co_await accepting_.close();
  listeners_.clear();
  co_await gate_.close();
}

bool Server::has_place(env::Stream& stream) {
  if (connections_ < limits_.connections_max) return true;
  // Those that were told to end are still there for a moment.
  Client* oldest = connections_ < 2 * limits_.connections_max ? silent_.pop_front() : nullptr;
  if (oldest != nullptr) {
    oldest->end.request();
    return true;
  }
  ++refused_;
  const Page page{.status = Status::kUnavailable, .body = sentence(Status::kUnavailable)};
  const std::string head = head_of(page, false, env_.wall_now());
  const std::array<Bytes, 2> pieces = {as_bytes(head), as_bytes(page.body)};
  // One that does not take it in at once does without.
  [[maybe_unused]] const Result<size_t> sent = stream.write_now(pieces);
  return false;
}

task::Task<void> Server::serve(env::Connection connection, env::Address local) {
  const std::unique_ptr<env::Stream> stream = env_.open(std::move(connection));
  if (!has_place(*stream)) co_return;
  Client client(*this, *stream, std::move(local));
  client.wait();
  co_await serve_requests(client);
}

task::Task<void> Server::serve_requests(Client& client) {
  while (client.served < limits_.requests_max) {
    // What came with the last request needs no wait.
    if (client.have == 0) {
      task::Deadline idle(env_, env_.now() + limits_.idle_timeout, client.end.token());
      const Result<size_t> got = co_await client.stream.read(client.bytes, idle.token());
      if (!got || *got == 0) co_return;
      client.have = *got;
    }
    const bool more = co_await serve_one(client);
    if (!more) co_return;
  }
}

task::Task<bool> Server::serve_one(Client& client) {
  task::Deadline deadline(env_, env_.now() + limits_.head_timeout, client.end.token());
  RequestParsed parsed = parse_request(client.arrived());
  while (parsed && !*parsed) {
    const MutableBytes room = MutableBytes(client.bytes).subspan(client.have);
    const Result<size_t> got = co_await client.stream.read(room, deadline.token());
    if (!got && got.error() == Errc::kTimedOut && deadline.expired()) {
      co_await refuse(client, Status::kRequestTimeout);
      co_return false;
    }
    if (!got || *got == 0) co_return false;
    client.have += *got;
    parsed = parse_request(client.arrived());
  }
  if (!parsed) {
    co_await refuse(client, parsed.error());
    co_return false;
  }
  RequestHead request = std::move(**parsed);
  client.drop(request.size);
  const bool is_head = request.method == "HEAD";
  const bool keep_alive = request.keep_alive && ++client.served < limits_.requests_max;
  if (request.has_body) {
    const bool may_read = is_head || request.method == "GET";
    co_await refuse(client, may_read ? Status::kContentTooLarge : Status::kMethodNotAllowed);
    co_return false;
  }
  client.unlink();
  Page page = co_await make_page(client, std::move(request));
  client.wait();
  const Result<void> sent = co_await answer(client, std::move(page), keep_alive, is_head);
  co_return sent&& keep_alive;
}

task::Task<Page> Server::make_page(Client& client, RequestHead request) {
  const auto found = pages_.find(request.path);
  if (found == pages_.end()) {
    std::string text = fmt::format("{}There is:\n", sentence(Status::kNotFound));
    for (const auto& [path, make] : pages_) text += path + "\n";
    co_return Page{.status = Status::kNotFound, .body = std::move(text)};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    co_return Page{.status = Status::kMethodNotAllowed,
                   .body = sentence(Status::kMethodNotAllowed)};
  }
  Page page = co_await found->second({.query = std::move(request.query),
                                      .host = std::move(request.host),
                                      .authorization = std::move(request.authorization),
                                      .peer = client.stream.peer(),
                                      .local = client.local});
  co_return page;
}

task::Task<Result<void>> Server::answer(Client& client, Page page, bool keep_alive, bool is_head) {
  ++answered_[page.status];
  const std::string head = head_of(page, keep_alive, env_.wall_now());
  std::vector<Bytes> pieces = {as_bytes(head)};
  if (!is_head && !page.body.empty()) pieces.push_back(as_bytes(page.body));
  task::Deadline deadline(env_, env_.now() + limits_.write_timeout, client.end.token());
  const Result<void> sent = co_await client.stream.write(pieces, deadline.token());
  co_return sent;
}

// Closed at once, with bytes of the client's unread, the answer would be lost on its way.
task::Task<void> Server::refuse(Client& client, Status status) {
  Page page{.status = status, .body = sentence(status)};
  const Result<void> sent = co_await answer(client, std::move(page), false, false);
  if (!sent || !client.stream.finish()) co_return;
  task::Deadline deadline(env_, env_.now() + limits_.linger_timeout, client.end.token());
  for (size_t read = 0; read < kLingerBytesMax;) {
    const Result<size_t> got = co_await client.stream.read(client.bytes, deadline.token());
    if (!got || *got == 0) co_return;
    read += *got;
  }
}

}  // namespace cairn::http
