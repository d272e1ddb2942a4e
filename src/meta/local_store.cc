// SPDX-License-Identifier: Apache-2.0
#include "meta/local_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::meta {

namespace {

// How often the store looks whether it stood still itself, and how late it has to be for that. Then
// holders renewed their leases in vain, and get the full time again, as after a restart.
constexpr Duration kLook = 250_ms;
constexpr Duration kStoodStill = 500_ms;

// Wakes those who wait now; who comes later waits for the next time.
void pulse(task::Event& event) {
  event.set();
  event.reset();
}

class LocalStore final : public Store {
 public:
  explicit LocalStore(env::Env& env, StateLimits limits = {});
  LocalStore(env::Env& env, std::unique_ptr<State> state, std::unique_ptr<Journal> journal);
  LocalStore(env::Env& env, State& state);
  ~LocalStore() override;

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
  class LocalWatch;
  class Inside;

  LocalStore(env::Env& env, State& state, std::unique_ptr<State> owned,
             std::unique_ptr<Journal> journal, task::CancelToken stop);

  Result<void> changeable() const;
  void keep(Mutation mutation);
  void show(uint64_t durable, Revision revision);
  // Until everything applied so far is durable.
  task::Task<Result<void>> kept(task::CancelToken token);
  task::Task<void> write_pending();
  task::Task<void> end_leases();

  env::Env& env_;
  std::unique_ptr<State> owned_;
  State& state_;
  std::unique_ptr<Journal> journal_;
  Revision shown_;  // durable, and what readers see
  std::vector<Mutation> pending_;
  uint64_t applied_ = 0;  // mutations so far
  uint64_t durable_ = 0;
  std::optional<Error> broken_;
  bool is_writing_ = false;
  size_t watchers_ = 0;
  task::Event moved_;         // durable_, shown_ or broken_ did
  task::Event leases_moved_;  // the first end may be another
  task::CancelSource stop_;
  task::Gate gate_;
};

// A call under way: the store is not destroyed before it has ended.
class LocalStore::Inside {
 public:
  Inside(LocalStore& store, task::CancelToken token) : gate_(store.gate_) {
    if (token.requested()) {
      state_ = fail(token.error());
    } else if (store.broken_) {
      state_ = fail(*store.broken_);
    } else if (!gate_.enter()) {
      state_ = fail(Errc::kClosed, "the metadata store was closed");
    } else {
      entered_ = true;
    }
  }
  ~Inside() {
    if (entered_) gate_.leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  explicit operator bool() const { return entered_; }
  Error error() const { return state_.error(); }

 private:
  task::Gate& gate_;
  Result<void> state_;
  bool entered_ = false;
};

class LocalStore::LocalWatch final : public Watch {
 public:
  LocalWatch(LocalStore& store, Range range, Revision from)
      : store_(store), range_(std::move(range)), from_(from) {}
  ~LocalWatch() override { CHECK(closed_, "a watch is closed before it is destroyed"); }

  task::Task<Result<std::vector<Change>>> next(task::CancelToken token) override {
    const Inside inside(store_, token);
    if (!inside) co_return fail(inside.error());
    while (true) {
      if (store_.broken_) co_return fail(*store_.broken_);
      Result<std::vector<Change>> found = store_.state_.changes(range_, from_, store_.shown_);
      if (!found || !found->empty()) co_return found;
      if (store_.gate_.is_closed()) co_return fail(Errc::kClosed, "the metadata store was closed");
      const Result<void> waited = co_await store_.moved_.wait(token);
      if (!waited) co_return fail(waited.error());
    }
  }
  Revision position() const override { return from_; }
  task::Task<void> close() override {
    if (!std::exchange(closed_, true)) --store_.watchers_;
    co_return;
  }

 private:
  LocalStore& store_;
  Range range_;
  Revision from_;
  bool closed_ = false;
};

LocalStore::LocalStore(env::Env& env, State& state, std::unique_ptr<State> owned,
                       std::unique_ptr<Journal> journal, task::CancelToken stop)
    : env_(env),
      owned_(std::move(owned)),
      state_(state),
      journal_(std::move(journal)),
      shown_(state_.revision()),
      stop_(stop) {
  state_.restart_leases(env_.now());
  gate_.spawn(end_leases());
}

LocalStore::LocalStore(env::Env& env, StateLimits limits)
    : LocalStore(env, std::make_unique<State>(limits), nullptr) {}

// With braces, because they evaluate from left to right.
LocalStore::LocalStore(env::Env& env, std::unique_ptr<State> state,
                       std::unique_ptr<Journal> journal)
    : LocalStore{env, *state, std::move(state), std::move(journal), {}} {}

LocalStore::LocalStore(env::Env& env, State& state)
    : LocalStore(env, state, nullptr, nullptr, env.stop_token()) {}

LocalStore::~LocalStore() {
  CHECK(gate_.is_closed(), "a metadata store is closed before it is destroyed");
  CHECK(watchers_ == 0, "watches are closed before their store is destroyed");
}

Result<void> LocalStore::changeable() const {
  if (stop_.requested()) return fail(Errc::kClosed, "the metadata store ends");
  return {};
}

void LocalStore::show(uint64_t durable, Revision revision) {
  durable_ = durable;
  shown_ = revision;
  pulse(moved_);
}

void LocalStore::keep(Mutation mutation) {
  if (mutation.empty()) return;
  if (!mutation.rows.empty()) state_.forget(shown_, mutation);
  ++applied_;
  if (!journal_) return show(applied_, state_.revision());
  pending_.push_back(std::move(mutation));
  if (!std::exchange(is_writing_, true)) gate_.spawn(write_pending());
}

task::Task<void> LocalStore::write_pending() {
  while (!pending_.empty() && !broken_) {
    const std::vector<Mutation> mutations = std::exchange(pending_, {});
    const uint64_t upto = applied_;
    const Revision revision = state_.revision();
    const Result<void> written = co_await journal_->write(mutations);
    if (written) {
      show(upto, revision);
    } else {
      broken_ = written.error();
      pulse(moved_);
    }
  }
  is_writing_ = false;
}

task::Task<Result<void>> LocalStore::kept(task::CancelToken token) {
  const uint64_t ticket = applied_;
  while (durable_ < ticket) {
    if (broken_) co_return fail(*broken_);
    const Result<void> waited = co_await moved_.wait(token);
    if (!waited && durable_ < ticket) co_return fail(waited.error());
  }
  co_return Result<void>{};
}

task::Task<Result<std::optional<Entry>>> LocalStore::get(std::string key, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> fits = check_key(key); !fits) co_return fail(fits.error());
  co_return state_.get(key, shown_);
}

task::Task<Result<Page>> LocalStore::list(ListOptions options, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> fits = check_list(options); !fits) co_return fail(fits.error());
  const Revision at = options.at == Revision() ? shown_ : options.at;
  if (at > shown_) co_return fail(Errc::kInvalid, "a revision that is not there yet");
  if (at < state_.compacted()) {
    co_return fail(Errc::kNotFound, "the revision to list at was compacted: list anew");
  }
  co_return state_.list(options.range, options.limit, at);
}

task::Task<Result<Committed>> LocalStore::commit(Batch batch, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> fits = check_batch(batch); !fits) co_return fail(fits.error());
  if (const Result<void> may = changeable(); !may) co_return fail(may.error());
  Mutation mutation;
  Result<Committed> committed = state_.commit(batch, mutation);
  keep(std::move(mutation));
  // A refusal, too, may rest on what is not durable yet.
  const Result<void> durable = co_await kept(token);
  if (!durable) co_return fail(durable.error());
  co_return committed;
}

task::Task<Result<Lease>> LocalStore::grant(Duration ttl, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> fits = check_ttl(ttl); !fits) co_return fail(fits.error());
  if (const Result<void> may = changeable(); !may) co_return fail(may.error());
  Mutation mutation;
  Result<Lease> granted = state_.grant(ttl, env_.now(), mutation);
  keep(std::move(mutation));
  pulse(leases_moved_);
  const Result<void> durable = co_await kept(token);
  if (!durable) co_return fail(durable.error());
  co_return granted;
}

task::Task<Result<Duration>> LocalStore::keep_alive(LeaseId lease, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> may = changeable(); !may) co_return fail(may.error());
  Result<Duration> kept_for = state_.keep_alive(lease, env_.now());
  pulse(leases_moved_);
  co_return kept_for;
}

task::Task<Result<void>> LocalStore::revoke(LeaseId lease, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> may = changeable(); !may) co_return fail(may.error());
  Mutation mutation;
  const Result<void> revoked = state_.revoke(lease, mutation);
  keep(std::move(mutation));
  const Result<void> durable = co_await kept(token);
  if (!durable) co_return fail(durable.error());
  co_return revoked;
}

task::Task<Result<std::unique_ptr<Watch>>> LocalStore::watch(Range range, Revision from,
                                                             task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> fits = check_range(range); !fits) co_return fail(fits.error());
  if (watchers_ == kWatchersMax) co_return fail(Errc::kLimit, "256 watches are open already");
  ++watchers_;
  const Revision begin = from == Revision() ? meta::next(shown_) : from;
  co_return std::make_unique<LocalWatch>(*this, std::move(range), begin);
}

task::Task<Result<void>> LocalStore::compact(Revision upto, task::CancelToken token) {
  const Inside inside(*this, token);
  if (!inside) co_return fail(inside.error());
  if (const Result<void> may = changeable(); !may) co_return fail(may.error());
  if (upto > shown_) co_return fail(Errc::kInvalid, "a revision that is not there yet");
  Mutation mutation;
  const Result<void> compacted = state_.compact(upto, mutation);
  keep(std::move(mutation));
  const Result<void> durable = co_await kept(token);
  if (!durable) co_return fail(durable.error());
  co_return compacted;
}

task::Task<void> LocalStore::end_leases() {
  while (!stop_.requested()) {
    for (const LeaseId lease : state_.ended(env_.now())) {
      Mutation mutation;
      CHECK(state_.revoke(lease, mutation));
      keep(std::move(mutation));
    }
    const Time end = state_.next_end();
    const Time look = end == Time::never() ? end : std::min(end, env_.now() + kLook);
    task::Deadline first(env_, look, stop_.token());
    [[maybe_unused]] const Result<void> woken = co_await leases_moved_.wait(first.token());
    if (look != Time::never() && env_.now() - look > kStoodStill) {
      state_.restart_leases(env_.now());
    }
  }
}

task::Task<void> LocalStore::close() {
  stop_.request();
  task::Task<void> emptied = gate_.close();
  pulse(moved_);
  co_await emptied;
  if (journal_) co_await journal_->close();
}

}  // namespace

std::unique_ptr<Store> memory_store(env::Env& env, StateLimits limits) {
  return std::make_unique<LocalStore>(env, limits);
}

std::unique_ptr<Store> local_store(env::Env& env, std::unique_ptr<State> state,
                                   std::unique_ptr<Journal> journal) {
  return std::make_unique<LocalStore>(env, std::move(state), std::move(journal));
}

std::unique_ptr<Store> local_store(env::Env& env, State& state) {
  return std::make_unique<LocalStore>(env, state);
}

}  // namespace cairn::meta
