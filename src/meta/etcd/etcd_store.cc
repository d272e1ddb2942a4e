// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/etcd_store.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "meta/etcd/etcd_watch.h"
#include "meta/etcd/messages.h"
#include "meta/etcd/post.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::meta::etcd {

namespace {

// A page of the longest entries, in base64, and then some.
constexpr size_t kAnswerMax = 32_MiB;

class HttpLine final : public Line {
 public:
  HttpLine(std::unique_ptr<env::Stream> stream, const env::Address& server, bool is_secure)
      : connection_(std::move(stream)), host_(server.text()), may_need_tls_(!is_secure) {}

  task::Task<Result<Reply>> ask(const Question& question, task::CancelToken token) override {
    const std::array<Bytes, 1> body = {as_bytes(question.body)};
    const http::Request request = etcd::post(host_, question.target, body);
    const Result<http::ResponseHead> head = co_await connection_.send(request, token);
    // An etcd that demands TLS does not say so to who speaks without.
    const bool is_silent = !head && (head.error() == Errc::kClosed || head.error() == Errc::kReset);
    if (is_silent && may_need_tls_ && !connection_.has_heard()) {
      co_return fail(Errc::kReset,
                     "etcd hung up without an answer: if it demands TLS, add "
                     "?ca=FILE&cert=FILE&key=FILE to its address");
    }
    if (!head) co_return fail(hung_up(head.error()));
    may_need_tls_ = false;
    Reply reply{.status = head->status, .body = {}};
    while (reply.body.size() <= kAnswerMax) {
      const Result<Bytes> data = co_await connection_.receive(token);
      if (!data) co_return fail(hung_up(data.error()));
      if (data->empty()) break;
      reply.body += as_text(*data);
    }
    connection_.release();
    if (reply.body.size() > kAnswerMax) co_return fail(Errc::kCorrupt, "an endless answer of etcd");
    if (reply.status == 200) co_return reply;
    const Error error = etcd::read_error(reply.status, reply.body);
    if (error == Errc::kReset || error == Errc::kUnsupported) co_return fail(error);
    co_return reply;
  }
  bool is_reusable() const override { return connection_.is_reusable(); }

 private:
  static Error hung_up(const Error& error) {
    return error == Errc::kClosed ? Error(Errc::kReset, "etcd hung up") : error;
  }

  http::Connection connection_;
  std::string host_;
  bool may_need_tls_;  // nothing was ever heard without it
};

std::unique_ptr<Line> make_plain(std::unique_ptr<env::Stream> stream, const env::Address& server) {
  return std::make_unique<HttpLine>(std::move(stream), server, false);
}

std::unique_ptr<Line> make_secure(std::unique_ptr<env::Stream> stream, const env::Address& server) {
  return std::make_unique<HttpLine>(std::move(stream), server, true);
}

class EtcdStore final : public Store {
 public:
  EtcdStore(env::Env& env, const LinesOptions& options);
  ~EtcdStore() override;

  task::Task<Result<std::optional<Entry>>> get(std::string key, task::CancelToken token) override;
  task::Task<Result<Page>> list(ListOptions options, task::CancelToken token) override;
  task::Task<Result<Committed>> commit(Batch batch, task::CancelToken token) override;
  // Whole seconds, rounded up; not less than etcd's election timeout allows.
  task::Task<Result<Lease>> grant(Duration ttl, task::CancelToken token) override;
  task::Task<Result<Duration>> keep_alive(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<void>> revoke(LeaseId lease, task::CancelToken token) override;
  task::Task<Result<std::unique_ptr<Watch>>> watch(Range range, Revision from,
                                                   task::CancelToken token) override;
  task::Task<Result<void>> compact(Revision upto, task::CancelToken token) override;
  task::Task<void> close() override;

 private:
  enum class Repeat : bool { kNo, kYes };

  // The body of an answer with status 200.
  task::Task<Result<std::string>> ask(const char* target, std::string body, Repeat repeat,
                                      task::CancelToken token);

  env::Env& env_;
  Lines lines_;
  size_t watchers_ = 0;
};

EtcdStore::EtcdStore(env::Env& env, const LinesOptions& options)
    : env_(env), lines_(env, options, options.security != nullptr ? &make_secure : &make_plain) {}

EtcdStore::~EtcdStore() {
  CHECK(watchers_ == 0, "watches are closed before their store is destroyed");
}

task::Task<Result<std::string>> EtcdStore::ask(const char* target, std::string body, Repeat repeat,
                                               task::CancelToken token) {
  Question question{
      .target = target, .body = std::move(body), .repeatable = repeat == Repeat::kYes};
  Result<Reply> reply = co_await lines_.ask(std::move(question), token);
  if (!reply) co_return fail(reply.error());
  if (reply->status != 200) co_return fail(etcd::read_error(reply->status, reply->body));
  co_return std::move(reply->body);
}

task::Task<Result<std::optional<Entry>>> EtcdStore::get(std::string key, task::CancelToken token) {
  if (const Result<void> fits = check_key(key); !fits) co_return fail(fits.error());
  Result<Page> page = co_await list({.range = Range::one(key), .limit = 1}, token);
  if (!page) co_return fail(page.error());
  if (page->entries.empty()) co_return std::nullopt;
  co_return std::move(page->entries.front());
}

task::Task<Result<Page>> EtcdStore::list(ListOptions options, task::CancelToken token) {
  if (const Result<void> fits = check_list(options); !fits) co_return fail(fits.error());
  const Result<std::string> body =
      co_await ask("/v3/kv/range", etcd::range_request(options), Repeat::kYes, token);
  if (!body) co_return fail(body.error());
  Result<Page> page = etcd::read_page(*body);
  // etcd says of which revision the store is, not the answer.
  if (page && options.at != Revision()) page->revision = options.at;
  co_return page;
}

task::Task<Result<Committed>> EtcdStore::commit(Batch batch, task::CancelToken token) {
  if (const Result<void> fits = check_batch(batch); !fits) co_return fail(fits.error());
  const Result<std::string> body =
      co_await ask("/v3/kv/txn", etcd::txn_request(batch), Repeat::kNo, token);
  if (!body) co_return fail(body.error());
  co_return etcd::read_committed(*body, batch);
}

task::Task<Result<Lease>> EtcdStore::grant(Duration ttl, task::CancelToken token) {
  if (const Result<void> fits = check_ttl(ttl); !fits) co_return fail(fits.error());
  const Result<std::string> body =
      co_await ask("/v3/lease/grant", etcd::grant_request(ttl), Repeat::kNo, token);
  if (!body) co_return fail(body.error());
  co_return etcd::read_granted(*body);
}

task::Task<Result<Duration>> EtcdStore::keep_alive(LeaseId lease, task::CancelToken token) {
  const Result<std::string> body =
      co_await ask("/v3/lease/keepalive", etcd::lease_request(lease), Repeat::kYes, token);
  if (!body) co_return fail(body.error());
  const Result<std::optional<Duration>> ttl = etcd::read_kept_alive(*body);
  if (!ttl) co_return fail(ttl.error());
  if (!*ttl) co_return fail(Errc::kNotFound, "the lease has ended");
  co_return **ttl;
}

task::Task<Result<void>> EtcdStore::revoke(LeaseId lease, task::CancelToken token) {
  const Result<std::string> body =
      co_await ask("/v3/lease/revoke", etcd::lease_request(lease), Repeat::kNo, token);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

task::Task<Result<void>> EtcdStore::compact(Revision upto, task::CancelToken token) {
  const Result<std::string> body =
      co_await ask("/v3/kv/compaction", etcd::compaction_request(upto), Repeat::kNo, token);
  if (!body) co_return fail(body.error());
  co_return Result<void>{};
}

task::Task<Result<std::unique_ptr<Watch>>> EtcdStore::watch(Range range, Revision from,
                                                            task::CancelToken token) {
  if (token.requested()) co_return fail(token.error());
  if (const Result<void> fits = check_range(range); !fits) co_return fail(fits.error());
  if (lines_.is_closed()) co_return fail(Errc::kClosed, "the metadata store was closed");
  if (watchers_ == kWatchersMax) co_return fail(Errc::kLimit, "256 watches are open already");
  ++watchers_;
  if (from == Revision()) {
    // A member may lag behind; only a read tells where the whole cluster is.
    const Result<Page> now = co_await list({.range = Range::one("\xff"), .limit = 1}, token);
    if (!now) {
      --watchers_;
      co_return fail(now.error());
    }
    from = next(now->revision);
  }
  co_return std::make_unique<EtcdWatch>(env_, lines_, watchers_, std::move(range), from);
}

task::Task<void> EtcdStore::close() { return lines_.close(); }

}  // namespace

std::unique_ptr<Store> etcd_store(env::Env& env, const LinesOptions& options) {
  return std::make_unique<EtcdStore>(env, options);
}

}  // namespace cairn::meta::etcd
