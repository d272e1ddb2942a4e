// SPDX-License-Identifier: Apache-2.0
#include "meta/remote_store.h"

#include <array>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::meta {

namespace {

// How long a server may let a question for changes wait, and then some.
constexpr Duration kPollPatience = 8_s;
constexpr Duration kPollPause = 100_ms;

// A frame there, a frame back. The reply's status is the refusal, if there is one.
class FrameLine final : public Line {
 public:
  explicit FrameLine(std::unique_ptr<env::Stream> stream) : stream_(std::move(stream)) {}

  task::Task<Result<Reply>> ask(const Question& question, task::CancelToken token) override {
    reusable_ = false;
    const Result<void> sent = co_await stream_->write(as_bytes(question.body), token);
    if (!sent) co_return fail(sent.error());
    std::array<std::byte, kFrameHeadSize> head{};
    const Result<void> begun = co_await env::read_exactly(*stream_, head, token);
    if (looks_encrypted(head)) {
      co_return fail(Errc::kUnsupported,
                     "the metadata server demands TLS: add ?tls_key=FILE&name=NAME to its address");
    }
    if (!begun) co_return fail(hung_up(begun.error()));
    const Result<FrameHead> found = decode_head(head);
    if (!found) co_return fail(found.error());
    const auto asked = decode_head(as_bytes(question.body).first(kFrameHeadSize));
    if (!found->is_answer || found->call != asked->call) {
      co_return fail(Errc::kCorrupt, "the metadata server answers what was not asked");
    }
    Reply reply{.status = 0, .body = std::string(found->length, '\0')};
    if (found->refusal) reply.status = static_cast<uint16_t>(*found->refusal);
    const MutableBytes body = std::as_writable_bytes(std::span(reply.body));
    const Result<void> all = co_await env::read_exactly(*stream_, body, token);
    if (!all) co_return fail(hung_up(all.error()));
    // Damage on the way says nothing about the server: another connection may do better.
    if (!check_body(head, body)) co_return fail(Errc::kReset, "an answer arrived damaged");
    reusable_ = true;
    co_return reply;
  }
  bool is_reusable() const override { return reusable_; }

 private:
  static Error hung_up(const Error& error) {
    return error == Errc::kClosed ? Error(Errc::kReset, "the metadata server hung up") : error;
  }

  std::unique_ptr<env::Stream> stream_;
  bool reusable_ = false;
};

std::unique_ptr<Line> make_line(std::unique_ptr<env::Stream> stream, const env::Address&) {
  return std::make_unique<FrameLine>(std::move(stream));
}

bool is_repeatable(Call call) {
  return call == Call::kGet || call == Call::kList || call == Call::kKeepAlive ||
         call == Call::kPoll;
}

Error refused(Call call, Errc code) {
  const bool of_lease = call == Call::kCommit || call == Call::kKeepAlive || call == Call::kRevoke;
  if (code == Errc::kNotFound) {
    return {code, of_lease ? "the lease has ended" : "that history was compacted: list anew"};
  }
  if (code == Errc::kDenied) {
    return {code, "the metadata server lets this client read only: its role is reader"};
  }
  return {code, "the metadata server"};
}

}  // namespace

class RemoteStore::RemoteWatch final : public Watch {
 public:
  RemoteWatch(RemoteStore& store, Range range, Revision from)
      : store_(store), range_(std::move(range)), from_(from) {}
  ~RemoteWatch() override { CHECK(closed_, "a watch is closed before it is destroyed"); }

  task::Task<Result<std::vector<Change>>> next(task::CancelToken token) override {
    while (true) {
      Result<PollAnswer> answer =
          co_await store_.ask<PollAnswer>(PollRequest{range_, from_}, token);
      if (answer) {
        from_ = answer->position;
        if (!answer->changes.empty()) co_return std::move(answer->changes);
        continue;
      }
      const Error error = answer.error();
      if (token.requested() || !may_pass(error)) co_return fail(error);
      task::Either both(token, store_.lines_.stop_token());
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(store_.env_, kPollPause, both.token());
    }
  }
  Revision position() const override { return from_; }
  task::Task<void> close() override {
    if (!std::exchange(closed_, true)) --store_.watchers_;
    co_return;
  }

 private:
  static bool may_pass(const Error& error) {
    return error == Errc::kUnreachable || error == Errc::kTimedOut || error == Errc::kReset ||
           error == Errc::kLimit || error == Errc::kIo;
  }

  RemoteStore& store_;
  Range range_;
  Revision from_;
  bool closed_ = false;
};

RemoteStore::RemoteStore(env::Env& env, LinesOptions options)
    : env_(env), lines_(env, std::move(options), &make_line) {}

RemoteStore::~RemoteStore() {
  CHECK(watchers_ == 0, "watches are closed before their store is destroyed");
}

task::Task<Result<Answer>> RemoteStore::ask_server(const Request& request,
                                                   task::CancelToken token) {
  const Call call = call_of(request);
  Question question{.target = {}, .body = encode(request), .repeatable = is_repeatable(call)};
  if (call == Call::kPoll) question.patience = kPollPatience;
  const Result<Reply> reply = co_await lines_.ask(std::move(question), token);
  if (!reply) co_return fail(reply.error());
  if (reply->status != 0) {
    const auto code = static_cast<Errc>(reply->status);
    // It was told to end, we were not: as if it were gone.
    if (code == Errc::kClosed) co_return fail(Errc::kReset, "the metadata server ends");
    const Error refusal = refused(call, code);
    if (refusal == Errc::kDenied) lines_.note_refusal();
    co_return fail(refusal);
  }
  co_return decode_answer(call, as_bytes(reply->body));
}

template <class T>
task::Task<Result<T>> RemoteStore::ask(Request request, task::CancelToken token) {
  Result<Answer> answer = co_await ask_server(request, token);
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
  if (lines_.is_closed()) co_return fail(Errc::kClosed, "the metadata store was closed");
  if (watchers_ == kWatchersMax) co_return fail(Errc::kLimit, "256 watches are open already");
  ++watchers_;
  if (from == Revision()) {
    const Result<PollAnswer> now = co_await ask<PollAnswer>(PollRequest{range, from}, token);
    if (!now) {
      --watchers_;
      co_return fail(now.error());
    }
    from = now->position;
  }
  co_return std::make_unique<RemoteWatch>(*this, std::move(range), from);
}

task::Task<void> RemoteStore::close() { return lines_.close(); }

}  // namespace cairn::meta
