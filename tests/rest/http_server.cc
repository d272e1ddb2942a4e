// SPDX-License-Identifier: Apache-2.0
#include "rest/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "task/deadline.h"

namespace cairn::rest {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return text;
}

// None: `bytes` does not hold all of it yet.
std::optional<ServedRequest> take_request(std::string& bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return std::nullopt;
  ServedRequest request;
  size_t at = bytes.find("\r\n");
  const std::string line = bytes.substr(0, at);
  request.method = line.substr(0, line.find(' '));
  request.target = line.substr(line.find(' ') + 1, line.rfind(' ') - line.find(' ') - 1);
  while (at < end) {
    const size_t start = at + 2;
    at = bytes.find("\r\n", start);
    const std::string field = bytes.substr(start, at - start);
    const size_t colon = field.find(": ");
    request.fields[lower(field.substr(0, colon))] = field.substr(colon + 2);
  }
  const auto length = request.fields.find("content-length");
  const size_t body = length == request.fields.end() ? 0 : std::stoull(length->second);
  if (bytes.size() < end + 4 + body) return std::nullopt;
  request.body = bytes.substr(end + 4, body);
  bytes.erase(0, end + 4 + body);
  return request;
}

std::string in_chunks(const std::string& body) {
  std::string text;
  for (size_t at = 0; at < body.size(); at += 1000) {
    const std::string part = body.substr(at, 1000);
    text += fmt::format("{:x};note=\"a b\"\r\n{}\r\n", part.size(), part);
  }
  return text + "0\r\nChecked: yes\r\n\r\n";
}

}  // namespace

task::Task<void> HttpServer::run(env::Env& env, env::Address at) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(at);
  if (!listener) co_return;
  task::Gate gate;
  while (true) {
    Result<env::Connection> connection = co_await (*listener)->accept(env.stop_token());
    if (!connection) break;
    ++connections;
    gate.spawn(serve(env, env.open(std::move(*connection))));
  }
  co_await gate.close();
}

task::Task<void> HttpServer::serve(env::Env& env, std::unique_ptr<env::Stream> stream) {
  std::string bytes;
  std::vector<std::byte> room(65536);
  while (true) {
    std::optional<ServedRequest> request = take_request(bytes);
    if (!request) {
      const Result<size_t> got = co_await stream->read(room, env.stop_token());
      if (!got || *got == 0) co_return;
      bytes += as_text(Bytes(room).first(*got));
      continue;
    }
    ++requests;
    ++count[request->method];
    const Trouble now = trouble ? trouble(*request) : Trouble();
    if (now.delay > 0_s) {
      const Result<void> slept = co_await task::sleep_for(env, now.delay, env.stop_token());
      if (!slept) co_return;
    }
    const Answer done = now.status != 0 ? Answer{.status = now.status} : answer(*request);
    std::string text = text_of(*request, done, now);
    if (!now.instead.empty()) text = now.instead;
    if (now.cut && *now.cut < text.size()) text.resize(*now.cut);
    const Result<void> sent = co_await stream->write(as_bytes(text), env.stop_token());
    if (!sent || now.cut || !now.instead.empty() || habits.lengthless) co_return;
  }
}

void HttpServer::replace(const std::string& target, std::string bytes) {
  objects[target] = {.bytes = std::move(bytes), .version = next_version_++};
}

std::string HttpServer::etag(const Object& object) const {
  if (habits.content_etags) return fmt::format("\"{:x}\"", crc32c(as_bytes(object.bytes)));
  return fmt::format("\"v{}\"", object.version);
}

bool HttpServer::condition_holds(const ServedRequest& request) const {
  if (!habits.conditions) return true;
  if (!habits.delete_conditions && request.method == "DELETE") return true;
  const auto object = objects.find(request.target);
  if (const auto match = request.fields.find("if-match"); match != request.fields.end()) {
    return object != objects.end() && etag(object->second) == match->second;
  }
  return !request.fields.contains("if-none-match") || object == objects.end();
}

HttpServer::Answer HttpServer::answer(const ServedRequest& request) {
  const auto object = objects.find(request.target);
  if (request.method == "GET" || request.method == "HEAD") {
    if (object == objects.end()) return {.status = 404, .body = "not here"};
    return get(request, object->second);
  }
  if (!condition_holds(request)) return {.status = 412, .body = "changed"};
  if (request.method == "DELETE") {
    if (object == objects.end()) return {.status = 404};
    objects.erase(object);
    return {.status = 204};
  }
  if (request.method != "PUT") return {.status = 405};
  const bool is_new = object == objects.end();
  replace(request.target, request.body);
  Answer done{.status = static_cast<uint16_t>(is_new ? 201 : 204)};
  if (habits.etags_on_put) {
    done.fields = fmt::format("ETag: {}\r\n", etag(objects[request.target]));
  }
  return done;
}

HttpServer::Answer HttpServer::get(const ServedRequest& request, const Object& object) const {
  Answer done{.status = 200, .fields = fmt::format("ETag: {}\r\n", etag(object))};
  const auto range = request.fields.find("range");
  if (!habits.ranges || range == request.fields.end()) {
    done.body = object.bytes;
    return done;
  }
  const std::string& text = range->second;  // "bytes=0-511"
  const size_t first = std::stoull(text.substr(6));
  const size_t last =
      std::min<size_t>(std::stoull(text.substr(text.find('-') + 1)), object.bytes.size() - 1);
  if (first >= object.bytes.size()) return {.status = 416};
  done.status = 206;
  done.fields += fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, object.bytes.size());
  done.body = object.bytes.substr(first, last - first + 1);
  return done;
}

std::string HttpServer::text_of(const ServedRequest& request, const Answer& answer,
                                const Trouble& now) const {
  std::string text = habits.says_continue ? "HTTP/1.1 100 Continue\r\n\r\n" : "";
  text += fmt::format("HTTP/1.1 {} whatever\r\nServer: test\r\n{}", answer.status, answer.fields);
  if (answer.status == 204) return text + "\r\n";
  std::string body = answer.body;
  if (habits.chunked) {
    text += "Transfer-Encoding: chunked\r\n\r\n";
    body = in_chunks(body);
  } else if (habits.lengthless) {
    text += "Connection: close\r\n\r\n";
  } else {
    const auto length = static_cast<int64_t>(body.size()) + now.wrong_length;
    text += fmt::format("Content-Length: {}\r\n\r\n", length);
  }
  return request.method == "HEAD" ? text : text + body;
}

}  // namespace cairn::rest
