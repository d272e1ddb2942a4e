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
      fencing_(env, store_, parts.fence, options_.retry),
      cleaner_(env, parts.source, store_, fencing_, options_.retry),
      own_counters_(env, pool_, parts.loads) {}

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
  arbiter->cleaner_.start();
  arbiter->gate_.spawn(arbiter->dismantle());
  arbiter->fencing_.start();
  co_return arbiter;
}

Task<void> Arbiter::close() {
  store_.stop();
  leaving_.set();
  co_await cleaner_.close();
  co_await gate_.close();
  co_await fencing_.close();
}

}  // namespace cairn::arbiter
