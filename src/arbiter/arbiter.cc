// SPDX-License-Identifier: Apache-2.0
#include "arbiter/arbiter.h"

#include <fmt/format.h>

#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::Mapping;

Arbiter::Arbiter(env::Env& env, ArbiterParts parts, meta::Leadership& leadership,
                 ArbiterOptions options)
    : parts_(parts),
      options_(std::move(options)),
      store_(env, parts.store, leadership,
             fmt::format("{}.{}", options_.host, leadership.fencing().value())),
      fencing_(env, store_, parts.fence, options_.retry),
      cleaner_(env, parts.source, store_, fencing_, options_.retry),
      own_counters_(env, store_.pool(), parts.loads),
      sessions_(env, store_, fencing_, parts.tenant, options_.lease),
      drives_(env, store_, parts.source, parts.fence, cleaner_, options_.lease),
      volumes_(store_, sessions_, parts.judge),
      extents_(store_, sessions_, own_counters_),
      copies_(store_, sessions_, own_counters_),
      snapshots_(env, store_, sessions_, fencing_, options_.snapshot_limit) {}

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
  arbiter->sessions_.start();
  arbiter->drives_.start();
  arbiter->cleaner_.start();
  arbiter->volumes_.start();
  arbiter->fencing_.start();
  co_return arbiter;
}

Task<void> Arbiter::close() {
  store_.stop();
  co_await cleaner_.close();
  co_await volumes_.close();
  co_await fencing_.close();
}

Task<Result<volume::Opened>> Arbiter::open(volume::OpenArgs args, CancelToken token) {
  return sessions_.open(std::move(args), token);
}

Task<Result<volume::Renewed>> Arbiter::renew(volume::Session session, CancelToken) {
  co_return sessions_.renew(session);
}

Task<Result<void>> Arbiter::close(volume::Session session, bool is_clean, CancelToken) {
  const Result<void> closed = co_await sessions_.close(session, is_clean);
  if (closed) snapshots_.holder_left(session.volume);
  co_return closed;
}

Task<Result<std::vector<Mapping>>> Arbiter::table(volume::Session session, uint32_t first,
                                                  CancelToken) {
  return extents_.table(session, first);
}

Task<Result<std::vector<Mapping>>> Arbiter::allocate(volume::Session session,
                                                     std::vector<uint32_t> extents, CancelToken) {
  return extents_.allocate(session, std::move(extents));
}

Task<Result<void>> Arbiter::release(volume::Session session, std::vector<uint32_t> extents,
                                    CancelToken) {
  return extents_.release(session, std::move(extents));
}

Task<Result<std::vector<Mapping>>> Arbiter::report(volume::Session session,
                                                   std::vector<volume::LegReport> legs,
                                                   CancelToken) {
  return extents_.report(session, std::move(legs));
}

Task<Result<Mapping>> Arbiter::relocate(volume::Session session, volume::Relocation what,
                                        CancelToken) {
  return extents_.relocate(session, what);
}

Task<Result<std::vector<volume::CopyPlace>>> Arbiter::begin_copies(volume::Session session,
                                                                   std::vector<uint32_t> extents,
                                                                   CancelToken) {
  return copies_.begin(session, std::move(extents));
}

Task<Result<std::vector<Mapping>>> Arbiter::end_copies(volume::Session session,
                                                       std::vector<volume::CopyEnd> copies,
                                                       CancelToken) {
  return copies_.end(session, std::move(copies));
}

Task<Result<volume::Asked>> Arbiter::asked(volume::Session session, Duration wait,
                                           CancelToken token) {
  return snapshots_.asked(session, wait, token);
}

Task<Result<void>> Arbiter::freeze(volume::Session session, std::string snapshot, bool is_ready,
                                   CancelToken) {
  return snapshots_.freeze(session, std::move(snapshot), is_ready);
}

}  // namespace cairn::arbiter
