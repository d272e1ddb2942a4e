// SPDX-License-Identifier: Apache-2.0
#include "meta/remote_store.h"

#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "meta/wire_format.h"
#include "rpc/client.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/either.h"
#include "task/task.h"

namespace cairn::meta {

namespace {

constexpr Duration kWatchPause = 100_ms;

rpc::ClientOptions client_options(RemoteStoreOptions options) {
  return {.servers = std::move(options.servers),
          .session = {.service = kServiceName,
                      .service_version = {.major = kServiceMajor},
                      .message_max = kBodyMax},
          .timeout = options.timeout,
          .connect_timeout = options.connect_timeout,
          .security = std::move(options.security),
          .on_refused = std::move(options.on_refused),
          .texts = error_texts()};
}

rpc::MethodCall as_call(const CallArgs& request) {
  return {.method = static_cast<uint16_t>(call_of(request)), .body = encode(request)};
}

bool is_repeatable(Call call) {
  return call == Call::kGet || call == Call::kList || call == Call::kKeepAlive;
}

Error refusal_text(Call call, Errc code) {
  const bool of_lease = call == Call::kCommit || call == Call::kKeepAlive || call == Call::kRevoke;
  if (code == Errc::kNotFound) {
    return {code, of_lease ? "the lease has ended" : "that history was compacted: list anew"};
  }
  if (code == Errc::kDenied) {
    return {code, "the metadata server lets this client read only: its role is reader"};
  }
  return {code, "the metadata server"};
}

// Another connection may do better.
bool may_pass(const Error& error) {
  return error == Errc::kUnreachable || error == Errc::kTimedOut || error == Errc::kReset ||
         error == Errc::kLimit || error == Errc::kIo;
}

}  // namespace

rpc::ErrorTexts error_texts() {
  return {
      .demands_tls = "the metadata server demands TLS: add ?tls_key=FILE&name=NAME to its address",
      .lacks_tls =
          "the metadata server speaks without TLS at this port: leave tls_key out, or give the "
          "server keys",
      .unknown_key =
          "the metadata server does not know this client's name, or has another key for it",
      .hung_up = "the metadata server hung up",
      .closed = "the metadata store was closed",
      .unanswered = "no metadata server answered in time",
      .unreachable = "no metadata server can be reached"};
}

namespace {

class RemoteStore final : public Store {
 public:
  RemoteStore(env::Env& env, RemoteStoreOptions options);
  ~RemoteStore() override;

  task::Task<Result<std::optional<Entry>>> get(std::string key, task::CancelToken token) override;
  task::Task<Result<Page>> list(ListOptions options, task::CancelToken token) override;
  task::Task<Result<Committed>> commit(Batch batch, task::CancelToken token) override;
  task::Task<Result<Lease>> grant(Duration ttl, task::CancelToken token) override;
  task::Task<Result<Duration>> keep_alive(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<void>> revoke(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<std::unique_ptr<Watch>>> watch(Range range, Revision from,
                                                   task::CancelToken token) override;
  task::Task<Result<void>> compact(Revision upto, task::CancelToken token) override;
  task::Task<void> close() override;

 private:
  class RemoteWatch;
  template <class T>
  task::Task<Result<T>> ask(CallArgs request, task::CancelToken token);
  task::Task<Result<Answer>> ask_server(CallArgs request, task::CancelToken token);

  // An answer that is a refusal; tells who we are if we are denied.
  Error refused(Call call, Errc code) const;

  env::Env& env_;
  rpc::Client client_;
  size_t watchers_ = 0;
};

// A subscription, made again from where it was when its connection ends.
class RemoteStore::RemoteWatch final : public Watch {
 public:
  RemoteWatch(RemoteStore& store, Range range, Revision from)
      : store_(store), range_(std::move(range)), from_(from) {}
  ~RemoteWatch() override { CHECK(closed_, "a watch is closed before it is destroyed"); }

  // The position of a watch from no revision, which the first push says.
  task::Task<Result<void>> begin(task::CancelToken token) {
    while (true) {
      const Result<WatchPush> push = co_await take_push(token);
      if (push) co_return Result<void>{};
      if (!may_pass(push.error()) || token.requested()) co_return fail(push.error());
      const Result<void> paused = co_await pause(token);
      if (!paused) co_return paused;
    }
  }
  task::Task<Result<std::vector<Change>>> next(task::CancelToken token) override {
    while (true) {
      Result<WatchPush> push = co_await take_push(token);
      if (push && !push->changes.empty()) co_return std::move(push->changes);
      if (push) continue;
      if (token.requested() || !may_pass(push.error())) co_return fail(push.error());
      const Result<void> paused = co_await pause(token);
      if (!paused) co_return fail(paused.error());
    }
  }
  Revision position() const override { return from_; }
  task::Task<void> close() override {
    if (!std::exchange(closed_, true)) --store_.watchers_;
    subscription_ = nullptr;
    co_return;
  }

 private:
  task::Task<Result<void>> pause(task::CancelToken token) {
    task::Either both(token, store_.client_.stop_token());
    const Result<void> slept = co_await task::sleep_for(store_.env_, kWatchPause, both.token());
    co_return slept;
  }
  task::Task<Result<WatchPush>> take_push(task::CancelToken token) {
    if (subscription_ == nullptr) {
      auto subscription =
          co_await store_.client_.subscribe(as_call(WatchRequest{range_, from_}), token);
      if (!subscription) co_return fail(subscription.error());
      subscription_ = std::move(*subscription);
    }
    const Result<rpc::Reply> push = co_await subscription_->next(token);
    if (!push && token.requested()) co_return fail(push.error());
    if (!push) {
      subscription_ = nullptr;
      // In good order or not: a watch goes on.
      const bool is_over = store_.client_.is_closed();
      co_return fail(is_over ? Error(Errc::kClosed, "the metadata store was closed")
                             : Error(Errc::kReset, "the metadata server hung up"));
    }
    if (push->refusal) {
      subscription_ = nullptr;
      co_return fail(store_.refused(Call::kWatch, *push->refusal));
    }
    Result<Answer> answer = decode_answer(Call::kWatch, as_bytes(push->body));
    if (!answer) co_return fail(answer.error());
    auto& changes = std::get<WatchPush>(*answer);
    from_ = changes.position;
    co_return std::move(changes);
  }

  RemoteStore& store_;
  Range range_;
  Revision from_;
  std::unique_ptr<rpc::Subscription> subscription_;
  bool closed_ = false;
};

RemoteStore::RemoteStore(env::Env& env, RemoteStoreOptions options)
    : env_(env), client_(env, client_options(std::move(options))) {}

RemoteStore::~RemoteStore() {
  CHECK(watchers_ == 0, "watches are closed before their store is destroyed");
}

Error RemoteStore::refused(Call call, Errc code) const {
  // It was told to end, we were not: as if it were gone.
  if (code == Errc::kClosed) return {Errc::kReset, "the metadata server ends"};
  if (code == Errc::kDenied) client_.note_refusal();
  return refusal_text(call, code);
}

task::Task<Result<Answer>> RemoteStore::ask_server(CallArgs request, task::CancelToken token) {
  const Call call = call_of(request);
  const Result<rpc::Reply> reply =
      co_await client_.call(as_call(request), {.repeatable = is_repeatable(call)}, token);
  if (!reply) co_return fail(reply.error());
  if (reply->refusal) co_return fail(refused(call, *reply->refusal));
  co_return decode_answer(call, as_bytes(reply->body));
}

template <class T>
task::Task<Result<T>> RemoteStore::ask(CallArgs request, task::CancelToken token) {
  Result<Answer> answer = co_await ask_server(std::move(request), token);
  if (!answer) co_return fail(answer.error());
  if constexpr (std::is_void_v<T>) {
    co_return Result<void>{};
  } else {
    co_return std::move(std::get<T>(*answer));
  }
}

task::Task<Result<std::optional<Entry>>> RemoteStore::get(std::string key,
                                                          task::CancelToken token) {
  if (const Result<void> fits = check_key(key); !fits) co_return fail(fits.error());
  co_return co_await ask<std::optional<Entry>>(GetRequest{std::move(key)}, token);
}

task::Task<Result<Page>> RemoteStore::list(ListOptions options, task::CancelToken token) {
  if (const Result<void> fits = check_list(options); !fits) co_return fail(fits.error());
  co_return co_await ask<Page>(std::move(options), token);
}

task::Task<Result<Committed>> RemoteStore::commit(Batch batch, task::CancelToken token) {
  if (const Result<void> fits = check_batch(batch); !fits) co_return fail(fits.error());
  co_return co_await ask<Committed>(std::move(batch), token);
}

task::Task<Result<Lease>> RemoteStore::grant(Duration ttl, task::CancelToken token) {
  if (const Result<void> fits = check_ttl(ttl); !fits) co_return fail(fits.error());
  co_return co_await ask<Lease>(GrantRequest{ttl}, token);
}

task::Task<Result<Duration>> RemoteStore::keep_alive(LeaseId lease, task::CancelToken token) {
  return ask<Duration>(KeepAliveRequest{lease}, token);
}

task::Task<Result<void>> RemoteStore::revoke(LeaseId lease, task::CancelToken token) {
  return ask<void>(RevokeRequest{lease}, token);
}

task::Task<Result<void>> RemoteStore::compact(Revision upto, task::CancelToken token) {
  return ask<void>(CompactRequest{upto}, token);
}

task::Task<Result<std::unique_ptr<Watch>>> RemoteStore::watch(Range range, Revision from,
                                                              task::CancelToken token) {
  if (token.requested()) co_return fail(token.error());
  if (const Result<void> fits = check_range(range); !fits) co_return fail(fits.error());
  if (client_.is_closed()) co_return fail(Errc::kClosed, "the metadata store was closed");
  if (watchers_ == kWatchersMax) co_return fail(Errc::kLimit, "256 watches are open already");
  ++watchers_;
  auto watch = std::make_unique<RemoteWatch>(*this, std::move(range), from);
  if (from == Revision()) {
    const Result<void> begun = co_await watch->begin(token);
    if (!begun) {
      co_await watch->close();
      co_return fail(begun.error());
    }
  }
  co_return watch;
}

task::Task<void> RemoteStore::close() { return client_.close(); }

}  // namespace

std::unique_ptr<Store> remote_store(env::Env& env, RemoteStoreOptions options) {
  return std::make_unique<RemoteStore>(env, std::move(options));
}

}  // namespace cairn::meta
