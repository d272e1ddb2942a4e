// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter.h"

#include <fmt/format.h>

#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

Arbiter::Arbiter(env::Env& env, ArbiterParts parts, meta::Leadership& leadership,
                 ArbiterOptions options)
    : env_(env),
      parts_(parts),
      options_(std::move(options)),
      store_(env, parts.store, leadership,
             fmt::format("{}.{}", options_.host, leadership.fencing().value())),
      pool_(store_.pool()),
      own_counters_(env, pool_, parts.loads),
      cleaner_(env, parts.source, *this, store_.host(), options_.retry) {}

Arbiter::~Arbiter() = default;

Task<Result<std::unique_ptr<Arbiter>>> Arbiter::load(env::Env& env, ArbiterParts parts,
                                                     meta::Leadership& leadership,
                                                     ArbiterOptions options, CancelToken token) {
  auto arbiter = std::make_unique<Arbiter>(env, parts, leadership, std::move(options));
  const Result<void> read =
      co_await arbiter->store_.read(arbiter->options_.extent_bytes, arbiter->cleaner_, token);
  if (!read) {
    co_await arbiter->close();
    co_return fail(read.error());
  }
  // Whoever had renewed a lease elsewhere has all of it once more.
  for (const auto& [id, volume] : arbiter->pool_.volumes()) {
    arbiter->lease_ends_[id] = env.now() + arbiter->options_.lease;
  }
  arbiter->note_free_numbers();
  arbiter->cleaner_.start(arbiter->store_.identity());
  arbiter->gate_.spawn(arbiter->dismantle());
  arbiter->start_late_fences();
  co_return arbiter;
}

Task<void> Arbiter::close() {
  store_.stop();
  leaving_.set();
  co_await cleaner_.close();
  co_await gate_.close();
}

}  // namespace cairn::arbiter
