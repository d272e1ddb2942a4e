// SPDX-License-Identifier: Apache-2.0
#include "rpc/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "task/either.h"

namespace cairn::rpc {

namespace {

Error lie(const char* what) { return {Errc::kCorrupt, what}; }

Error farewell(const FrameHead& head) {
  const auto detail = static_cast<int32_t>(head.amount);
  switch (static_cast<GoodbyeReason>(head.status)) {
    case GoodbyeReason::kShutdown:
      return {Errc::kReset, "the server ends"};
    case GoodbyeReason::kOtherProtocol:
      return {Errc::kUnsupported, "the server speaks another major version of the protocol",
              detail};
    case GoodbyeReason::kOtherService:
      return {Errc::kUnsupported, "the server serves something else"};
    case GoodbyeReason::kOtherServiceVersion:
      return {Errc::kUnsupported, "the server has another major version of the service", detail};
    case GoodbyeReason::kNoTls:
      return {Errc::kUnsupported, "the server speaks without TLS"};
    case GoodbyeReason::kLimit:
      return {Errc::kReset, "the server was asked for more than it allows at once"};
    case GoodbyeReason::kNonsense:
      return {Errc::kReset, "the server did not understand"};
  }
  return {Errc::kReset, "the server ends"};
}

}  // namespace

Session::Session(env::Env& env, std::unique_ptr<env::Stream> stream, const SessionOptions& options)
    : env_(env), options_(options), link_(env, std::move(stream), options.link) {}

Session::~Session() { CHECK(slots_.empty(), "a session has run to its end before it goes"); }

uint16_t Session::service_minor() const {
  return std::min(welcome_.service_version.minor, options_.service_version.minor);
}

Result<void> Session::take_welcome(const Result<Frame>& frame) {
  if (!frame) return fail(frame.error());
  if (frame->head.kind == FrameKind::kGoodbye) return fail(farewell(frame->head));
  if (frame->head.kind != FrameKind::kWelcome) return fail(lie("the server greets oddly"));
  const Result<Welcome> welcome = decode_welcome(as_bytes(frame->body));
  if (!welcome) return fail(welcome.error());
  if (welcome->protocol.major != kProtocolVersion.major ||
      welcome->service_version.major != options_.service_version.major) {
    return fail(lie("the server greets with a version that was not asked for"));
  }
  welcome_ = *welcome;
  calls_.release(welcome->calls_max);
  subscriptions_.release(welcome->subscriptions_max);
  bytes_.release(welcome->call_bytes_max);
  is_open_ = true;
  link_.set_body_max(options_.message_max);
  return {};
}

task::Task<Result<void>> Session::open(task::CancelToken token) {
  link_.send({.kind = FrameKind::kHello},
             encode(Hello{.service_version = options_.service_version,
                          .push_window = options_.push_window,
                          .message_max = static_cast<uint32_t>(options_.message_max),
                          .service = options_.service}));
  const Result<Frame> frame = co_await link_.receive_greeting(token);
  Result<void> opened = take_welcome(frame);
  if (!opened) link_.end(opened.error());
  co_return opened;
}

task::Task<void> Session::run() {
  while (!link_.is_over()) {
    Result<Frame> frame = co_await link_.receive();
    if (!frame) break;
    const Result<void> handled = handle(std::move(*frame));
    if (!handled) link_.end(handled.error());
  }
  end_all();
  co_await link_.close();
}

void Session::end_all() {
  is_retired_ = true;
  const Error error = link_.error();
  for (auto& [id, slot] : std::exchange(slots_, {})) {
    if (slot.waiting != nullptr) {
      slot.waiting->reply = fail(error);
      slot.waiting->done.set();
    }
    if (slot.subscription != nullptr) slot.subscription->finish(fail(error));
  }
}

void Session::retire() {
  is_retired_ = true;
  end_if_idle();
}

void Session::end_if_idle() {
  const auto is_awaited = [](const auto& each) {
    return each.second.waiting != nullptr || each.second.subscription != nullptr;
  };
  if (!is_retired_ || !is_open_ || beginning_ > 0) return;
  if (std::ranges::none_of(slots_, is_awaited)) {
    link_.end({Errc::kClosed, "the session was left"});
  }
}

Result<void> Session::handle(Frame frame) {
  switch (frame.head.kind) {
    case FrameKind::kReply:
      return take_reply(std::move(frame));
    case FrameKind::kPush:
      return take_push(std::move(frame));
    case FrameKind::kGoodbye:
      if (static_cast<GoodbyeReason>(frame.head.status) != GoodbyeReason::kShutdown) {
        return fail(farewell(frame.head));
      }
      retire();
      return {};
    default:
      return fail(lie("the server says what only a client says"));
  }
}

task::Semaphore& Session::places(bool is_subscription) {
  return is_subscription ? subscriptions_ : calls_;
}

Result<void> Session::take_reply(Frame frame) {
  const auto found = slots_.find(frame.head.id);
  if (found == slots_.end()) return fail(lie("the server answers what was not asked"));
  const Slot slot = found->second;
  slots_.erase(found);
  bytes_.release(slot.size);
  places(slot.is_subscription).release();
  Reply reply{.refusal = std::nullopt, .body = std::move(frame.body)};
  if (frame.head.status != 0) reply.refusal = static_cast<Errc>(frame.head.status);
  if (slot.waiting != nullptr) {
    slot.waiting->reply = std::move(reply);
    slot.waiting->done.set();
  } else if (slot.subscription != nullptr && reply.refusal) {
    slot.subscription->finish(std::move(reply));
  } else if (slot.subscription != nullptr) {
    slot.subscription->finish(fail(Errc::kClosed, "the subscription ended"));
  }
  end_if_idle();
  return {};
}

Result<void> Session::take_push(Frame frame) {
  const auto found = slots_.find(frame.head.id);
  if (found == slots_.end() || !found->second.is_subscription) {
    return fail(lie("the server pushes where nobody subscribed"));
  }
  Slot& slot = found->second;
  if (slot.allowance == 0) return fail(lie("the server pushes more than it may"));
  --slot.allowance;
  if (slot.subscription == nullptr) return {};
  slot.subscription->pushes_.push_back(std::move(frame.body));
  slot.subscription->changed_.set();
  return {};
}

task::Task<Result<uint64_t>> Session::begin(MethodCall request, Slot slot, uint32_t timeout_ms,
                                            task::CancelToken token) {
  slot.size = request.body.size();
  slot.allowance = slot.is_subscription ? options_.push_window : 0;
  if (slot.size > welcome_.message_max || slot.size > welcome_.call_bytes_max) {
    co_return fail(Errc::kInvalid, "the message is larger than the server takes");
  }
  task::Either both(token, link_.stop_token());
  task::Semaphore& place = places(slot.is_subscription);
  ++beginning_;
  Result<void> acquired = co_await place.acquire(1, both.token());
  if (acquired) {
    acquired = co_await bytes_.acquire(slot.size, both.token());
    if (!acquired) place.release();
  }
  --beginning_;
  if (acquired && !takes_calls()) {
    place.release();
    bytes_.release(slot.size);
    acquired = fail(Errc::kReset, "the session was left");
  }
  if (!acquired) {
    end_if_idle();
    if (!token.requested() && link_.is_over()) co_return fail(link_.error());
    co_return fail(acquired.error());
  }
  const uint64_t id = ++last_id_;
  if (slot.subscription != nullptr) slot.subscription->id_ = id;
  slots_.emplace(id, slot);
  link_.send({.kind = slot.is_subscription ? FrameKind::kSubscribe : FrameKind::kCall,
              .method = request.method,
              .id = id,
              .amount = timeout_ms},
             std::move(request.body));
  co_return id;
}

task::Task<Result<Reply>> Session::call(MethodCall request, Time until, task::CancelToken token,
                                        bool& is_sent) {
  const std::shared_ptr<Session> self = shared_from_this();
  const uint32_t timeout_ms = until == Time::never() ? 0 : wire_timeout(until - env_.now());
  Waiting waiting;
  const Result<uint64_t> id =
      co_await begin(std::move(request), Slot{.waiting = &waiting}, timeout_ms, token);
  if (!id) co_return fail(id.error());
  is_sent = true;
  const Result<void> waited = co_await waiting.done.wait(token);
  if (waiting.reply) co_return std::move(*waiting.reply);
  abandon(*id);
  co_return fail(waited.error());
}

void Session::abandon(uint64_t id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  found->second.waiting = nullptr;
  found->second.subscription = nullptr;
  link_.send({.kind = FrameKind::kCancel, .id = id});
  end_if_idle();
}

task::Task<Result<std::unique_ptr<Subscription>>> Session::subscribe(MethodCall request,
                                                                     task::CancelToken token) {
  std::unique_ptr<Subscription> subscription(new Subscription(shared_from_this()));
  const Slot slot{.is_subscription = true, .subscription = subscription.get()};
  const Result<uint64_t> id = co_await begin(std::move(request), slot, 0, token);
  if (!id) co_return fail(id.error());
  co_return subscription;
}

Subscription::~Subscription() {
  if (id_ != 0 && !end_) session_->abandon(id_);
}

void Subscription::finish(Result<Reply> end) {
  end_ = std::move(end);
  changed_.set();
}

task::Task<Result<Reply>> Subscription::next(task::CancelToken token) {
  while (pushes_.empty()) {
    if (end_) co_return *end_;
    changed_.reset();
    const Result<void> waited = co_await changed_.wait(token);
    if (!waited && pushes_.empty() && !end_) co_return fail(waited.error());
  }
  Reply push{.refusal = std::nullopt, .body = std::move(pushes_.front())};
  pushes_.pop_front();
  // Credit for several at once costs a frame less.
  if (++taken_ * 2 >= session_->options_.push_window && !end_) {
    session_->slots_.at(id_).allowance += taken_;
    session_->link_.send({.kind = FrameKind::kCredit, .id = id_, .amount = taken_});
    taken_ = 0;
  }
  co_return push;
}

}  // namespace cairn::rpc
