// SPDX-License-Identifier: Apache-2.0
#include "rpc/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "task/deadline.h"

namespace cairn::rpc {

namespace {

LinkOptions link_options(const VisitOptions& options) {
  LinkOptions link = options.link;
  link.queue_max = options.limits.queue_max;
  return link;
}

}  // namespace

task::Task<Result<void>> Pushes::push(std::string body, task::CancelToken token) {
  if (body.size() > body_max_) co_return fail(Errc::kInvalid, "larger than the client takes");
  const Result<void> granted = co_await credit_.acquire(1, token);
  if (!granted) co_return granted;
  link_.send({.kind = FrameKind::kPush, .id = id_}, std::move(body));
  co_return Result<void>{};
}

Visit::Visit(env::Env& env, const std::vector<Service*>& services,
             std::unique_ptr<env::Stream> stream, std::optional<KnownClient> client,
             const VisitOptions& options, VisitHooks hooks)
    : env_(env),
      services_(services),
      service_(services.front()),
      client_(std::move(client)),
      options_(options),
      hooks_(std::move(hooks)),
      peer_(stream->peer()),
      link_(env, std::move(stream), link_options(options)) {}

Caller Visit::caller() const {
  return {.peer = peer_,
          .client = client_ ? &*client_ : nullptr,
          .minor = std::min(hello_.service_version.minor, service_->version().minor)};
}

void Visit::end(Errc reason) {
  stop_.request(reason);
  link_.end({reason, "the server ended the connection"});
}

void Visit::say_goodbye(GoodbyeReason reason, uint32_t amount) {
  link_.send(
      {.kind = FrameKind::kGoodbye, .status = static_cast<uint8_t>(reason), .amount = amount});
}

std::optional<GoodbyeReason> Visit::object_to(const Hello& hello) {
  if (hello.protocol.major != kProtocolVersion.major) return GoodbyeReason::kOtherProtocol;
  const auto named = std::ranges::find_if(
      services_, [&](const Service* each) { return hello.service == each->name(); });
  if (named == services_.end()) return GoodbyeReason::kOtherService;
  service_ = *named;
  if (hello.service_version.major != service_->version().major) {
    return GoodbyeReason::kOtherServiceVersion;
  }
  return std::nullopt;
}

// Bytes that are no greeting. A client that speaks TLS is told in a way that it understands.
void Visit::turn_away() {
  if (!looks_encrypted(link_.strange_bytes())) {
    if (!link_.strange_bytes().empty())
      hooks_.on_refused("it sent what is no request of this protocol");
    return;
  }
  hooks_.on_refused("it speaks TLS, and this server has no keys");
  say_goodbye(GoodbyeReason::kNoTls);
}

task::Task<bool> Visit::greet() {
  Result<Frame> frame = fail(Errc::kTimedOut, "");
  {
    task::Deadline deadline(env_, env_.now() + options_.hello_timeout, stop_.token());
    frame = co_await link_.receive_greeting(deadline.token());
  }
  if (!frame) {
    turn_away();
    co_return false;
  }
  const Result<Hello> hello = decode_hello(as_bytes(frame->body));
  if (frame->head.kind != FrameKind::kHello || !hello) {
    hooks_.on_refused("it does not greet");
    say_goodbye(GoodbyeReason::kNonsense);
    co_return false;
  }
  if (const std::optional<GoodbyeReason> objection = object_to(*hello)) {
    hooks_.on_refused("it speaks another version, or wants another service");
    const bool is_protocol = *objection == GoodbyeReason::kOtherProtocol;
    say_goodbye(*objection, is_protocol ? kProtocolVersion.major : service_->version().major);
    co_return false;
  }
  const VisitLimits& limits = options_.limits;
  hello_ = *hello;
  reply_max_ = std::min(limits.reply_max, hello->message_max);
  link_.set_body_max(limits.message_max);
  link_.send({.kind = FrameKind::kWelcome},
             encode(Welcome{.service_version = service_->version(),
                            .calls_max = limits.calls_max,
                            .subscriptions_max = limits.subscriptions_max,
                            .call_bytes_max = limits.call_bytes_max,
                            .message_max = limits.message_max}));
  is_greeted_ = true;
  co_return true;
}

task::Task<void> Visit::serve() {
  const bool is_greeted = co_await greet();
  if (is_greeted) hooks_.on_greeted();
  for (bool goes_on = is_greeted; goes_on;) {
    Result<Frame> frame = co_await link_.receive();
    goes_on = frame && handle(std::move(*frame));
  }
  stop_.request(Errc::kReset);
  co_await gate_.close();
  co_await link_.close();
}

bool Visit::handle(Frame frame) {
  switch (frame.head.kind) {
    case FrameKind::kCall:
    case FrameKind::kSubscribe:
      return begin(std::move(frame));
    case FrameKind::kCancel: {
      // One that has ended crossed its reply on the way.
      const auto found = running_.find(frame.head.id);
      if (found != running_.end()) found->second.cancel.request();
      if (frame.head.id <= last_id_) return true;
      break;
    }
    case FrameKind::kCredit:
      if (add_credit(frame.head)) return true;
      break;
    default:
      break;
  }
  hooks_.on_refused("it sent what makes no sense");
  say_goodbye(GoodbyeReason::kNonsense);
  return false;
}

bool Visit::add_credit(const FrameHead& head) {
  if (head.id > last_id_ || head.amount > hello_.push_window) return false;
  const auto found = running_.find(head.id);
  if (found == running_.end()) return true;
  if (found->second.pushes == nullptr) return false;
  task::Semaphore& credit = found->second.pushes->credit_;
  if (credit.available() + head.amount > hello_.push_window) return false;
  credit.release(head.amount);
  return true;
}

std::optional<Errc> Visit::refusal_of(const FrameHead& head) const {
  if (is_draining_) return Errc::kClosed;
  const std::optional<Method> method = service_->find(head.method);
  if (!method || method->pushes != (head.kind == FrameKind::kSubscribe)) {
    return Errc::kUnsupported;
  }
  if (client_ && !includes(client_->role, method->needs)) {
    hooks_.on_refused(
        fmt::format("it may not {}: its role is {}", method->verb, text(client_->role)));
    return Errc::kDenied;
  }
  return std::nullopt;
}

bool Visit::begin(Frame frame) {
  const FrameHead& head = frame.head;
  const VisitLimits& limits = options_.limits;
  const bool subscribes = head.kind == FrameKind::kSubscribe;
  if (head.id <= last_id_) {
    hooks_.on_refused("it used an id for the second time");
    say_goodbye(GoodbyeReason::kNonsense);
    return false;
  }
  last_id_ = head.id;
  const size_t calls = running_.size() - subscriptions_;
  const bool is_full =
      subscribes ? subscriptions_ == limits.subscriptions_max : calls == limits.calls_max;
  if (is_full || bytes_ + head.body_size > limits.call_bytes_max) {
    hooks_.on_refused("it asked for more at once than it was granted");
    say_goodbye(GoodbyeReason::kLimit);
    return false;
  }
  if (const std::optional<Errc> refusal = refusal_of(head)) {
    link_.send(
        {.kind = FrameKind::kReply, .status = static_cast<uint8_t>(*refusal), .id = head.id});
    return true;
  }
  Running& running =
      running_.try_emplace(head.id, size_t{head.body_size}, stop_.token()).first->second;
  bytes_ += running.size;
  if (subscribes) {
    ++subscriptions_;
    running.pushes = std::make_unique<Pushes>(link_, head.id, hello_.push_window);
    running.pushes->body_max_ = reply_max_;
    gate_.spawn(run_subscription(std::move(frame), running));
  } else {
    gate_.spawn(run_call(std::move(frame), running));
  }
  return true;
}

task::Task<void> Visit::run_call(Frame frame, Running& running) {
  Duration time{int64_t{frame.head.amount} * 1'000'000};
  if (time.ns == 0 || time > options_.call_timeout) time = options_.call_timeout;
  Result<std::string> result;
  {
    task::Deadline deadline(env_, env_.now() + time, running.cancel.token());
    result = co_await service_->call(frame.head.method, std::move(frame.body), caller(),
                                     deadline.token());
  }
  finish(frame.head.id, std::move(result));
}

task::Task<void> Visit::run_subscription(Frame frame, Running& running) {
  const Result<void> result = co_await service_->subscribe(
      frame.head.method, std::move(frame.body), caller(), *running.pushes, running.cancel.token());
  --subscriptions_;
  if (result) {
    finish(frame.head.id, std::string());
  } else {
    finish(frame.head.id, fail(result.error()));
  }
}

void Visit::finish(uint64_t id, Result<std::string> result) {
  const auto found = running_.find(id);
  bytes_ -= found->second.size;
  running_.erase(found);
  if (result && result->size() > reply_max_) {
    result = fail(Errc::kLimit, "the reply is larger than the client takes");
  }
  if (result) {
    link_.send({.kind = FrameKind::kReply, .id = id}, std::move(*result));
  } else {
    link_.send({.kind = FrameKind::kReply,
                .status = static_cast<uint8_t>(result.error().code()),
                .id = id});
  }
  end_if_drained();
}

void Visit::drain() {
  if (std::exchange(is_draining_, true)) return;
  if (!is_greeted_) return end(Errc::kClosed);
  say_goodbye(GoodbyeReason::kShutdown);
  for (auto& [id, running] : running_) {
    if (running.pushes != nullptr) running.cancel.request(Errc::kClosed);
  }
  end_if_drained();
}

void Visit::end_if_drained() {
  if (is_draining_ && running_.empty()) link_.stop_receiving();
}

}  // namespace cairn::rpc
