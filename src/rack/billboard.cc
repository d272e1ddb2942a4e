// SPDX-License-Identifier: Apache-2.0
#include "rack/billboard.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "rack/ledger.h"
#include "rack/record_format.h"
#include "task/deadline.h"

namespace cairn::rack {

namespace {

constexpr std::string_view kOffers = "billboard/offer/";

}  // namespace

std::string offer_key(std::string_view box, std::string_view shelf) {
  return std::string(kOffers) + std::string(box) + "/" + std::string(shelf);
}

uint64_t wall_ms(const env::Env& env) {
  return static_cast<uint64_t>(std::max<int64_t>(env.wall_now().ns, 0)) / 1'000'000;
}

task::Task<Result<Board>> read_board(meta::Store& store, uint64_t now_ms, task::CancelToken token) {
  Board board;
  meta::ListOptions options{.range = meta::Range::prefix(kOffers)};
  for (bool more = true; more;) {
    const Result<meta::Page> page = co_await store.list(options, token);
    if (!page) co_return fail(page.error());
    for (const meta::Entry& entry : page->entries) {
      Result<Offer> offer = decode_offer(as_bytes(entry.value));
      if (!offer || offer_key(offer->box, offer->shelf) != entry.key) {
        ++board.unreadable;
      } else {
        (offer->expires_ms > now_ms ? board.offers : board.stale).push_back(std::move(*offer));
      }
    }
    more = page->more && !page->entries.empty();
    if (more) options.range = options.range.behind(page->entries.back().key);
    options.at = page->revision;
  }
  co_return board;
}

Publisher::Publisher(env::Env& env, meta::Store& store, Options options)
    : env_(env), store_(store), options_(std::move(options)) {}

Publisher::~Publisher() {
  CHECK(lease_ == nullptr && gate_.is_closed(), "a publisher is closed before it is destroyed");
}

void Publisher::start() { gate_.spawn(run()); }

task::Task<void> Publisher::run() {
  while (!stop_.requested()) {
    changed_.reset();
    const Result<void> published = co_await publish();
    if (stop_.requested()) break;
    tell(published);
    const Duration pause = published ? options_.expiry / 3 : options_.expiry / 15;
    task::Deadline deadline(env_, env_.now() + pause, stop_.token());
    [[maybe_unused]] const Result<void> woken = co_await changed_.wait(deadline.token());
  }
}

task::Task<Result<void>> Publisher::publish() {
  if (lease_ != nullptr && !lease_->is_held()) {
    co_await lease_->close();
    lease_ = nullptr;
  }
  task::Deadline deadline(env_, env_.now() + options_.expiry / 3, stop_.token());
  if (lease_ == nullptr) {
    Result<std::unique_ptr<meta::HeldLease>> taken =
        co_await meta::HeldLease::take(env_, store_, options_.expiry, deadline.token());
    if (!taken) co_return fail(taken.error());
    lease_ = std::move(*taken);
  }
  meta::Batch batch;
  const auto expiry_ms = static_cast<uint64_t>(options_.expiry.ns) / 1'000'000;
  for (Offer& offer : options_.offers()) {
    offer.expires_ms = wall_ms(env_) + expiry_ms;
    batch.put(offer_key(offer.box, offer.shelf), encode(offer), lease_->id());
  }
  CHECK(batch.writes.size() <= kShelvesMax);
  const Result<meta::Committed> committed =
      co_await store_.commit(std::move(batch), deadline.token());
  if (!committed) co_return fail(committed.error());
  co_return Result<void>{};
}

void Publisher::tell(const Result<void>& published) {
  const bool failed = !published.has_value();
  if (std::exchange(is_failing_, failed) == failed || !options_.report) return;
  options_.report(published);
}

task::Task<void> Publisher::close() {
  stop_.request();
  co_await gate_.close();
  if (lease_ != nullptr) co_await lease_->close();
  lease_ = nullptr;
}

}  // namespace cairn::rack
