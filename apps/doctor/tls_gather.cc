// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "apps/doctor/tls_facts.h"
#include "env/io.h"
#include "fabric/host/controller.h"
#include "fabric/host/queue.h"
#include "fabric/host/session.h"
#include "fabric/host/tls.h"
#include "task/deadline.h"
#include "tls/stream.h"

namespace cairn::apps::doctor {

namespace {

class NoOwner final : public fabric::HostQueue::Owner {
 public:
  void queue_ended(fabric::HostQueue&, const Error&) override {}
  void queue_has_room(fabric::HostQueue&) override {}
  void queue_wants_abort(fabric::HostQueue&, uint16_t) override {}
};

class NoUser final : public fabric::HostSession::User {
 public:
  void session_lost(const Error&) override {}
  void session_event(const nvme::AsynchronousEvent&) override {}
};

// Nobody has it: enough to hear what a target says to strangers.
std::shared_ptr<const nvme::TlsKey> made_up_key() {
  const std::vector<std::byte> key(crypto::digest_size(crypto::Hash::kSha256));
  return std::make_shared<const nvme::TlsKey>(nvme::TlsKey::make(crypto::Hash::kSha256, key));
}

fabric::HostTls tls_of(const fabric::Uri& uri) {
  return {.context = std::make_shared<const tls::Context>(tls::Role::kClient),
          .key = uri.options.tls_key,
          .host_nqn = uri.options.host_nqn,
          .nqn = uri.nqn,
          .version = uri.options.tls_identity};
}

// One connection for the handshake alone, whose report says how far it came.
task::Task<void> shake_hands(env::Env& env, const fabric::Uri& uri, TlsFacts& facts) {
  const fabric::HostTls host = tls_of(uri);
  Result<tls::Psk> psk = fabric::psk_of(host);
  if (!psk) {
    facts.handshake_error = psk.error();
    co_return;
  }
  facts.identity = psk->identity;
  task::Deadline deadline(env, env.now() + uri.options.connect_timeout, env.stop_token());
  auto plain = co_await env::connect_stream(env, uri.paths.front(), {}, deadline.token());
  if (!plain) {
    facts.connect_error = plain.error();
    co_return;
  }
  task::Gate lingering;
  {
    tls::TlsStream stream(env, std::move(*plain), *host.context, std::move(*psk), lingering);
    const Result<void> done =
        co_await stream.shake_hands(uri.options.connect_timeout, env.stop_token());
    facts.report = stream.report();
    if (!done) facts.handshake_error = fabric::handshake_error(done.error(), facts.report);
  }
  co_await lingering.close();
}

task::Task<void> greet(env::Env& env, const fabric::Uri& uri, TlsFacts& facts) {
  NoOwner owner;
  const fabric::HostOptions& host = uri.options;
  fabric::HostQueue queue(env,
                          {.address = uri.paths.front(),
                           .header_digest = host.header_digest,
                           .data_digest = host.data_digest,
                           .connect_timeout = host.connect_timeout,
                           .command_timeout = host.admin_timeout,
                           .cancel_timeout = host.cancel_timeout,
                           .tls = tls_of(uri)},
                          owner);
  const Result<void> opened = co_await queue.open(env.stop_token());
  if (!opened) facts.greeting_error = opened.error();
  co_await queue.close();
}

task::Task<void> connect(env::Env& env, const fabric::Uri& uri, TlsFacts& facts) {
  NoUser user;
  fabric::HostSession::Options options{
      .address = uri.paths.front(), .nqn = uri.nqn, .host = uri.options};
  options.host.queues = 1;
  for (bool again = true; again;) {
    fabric::HostSession session(env, options, user);
    const Result<void> opened = co_await session.open(env.stop_token());
    facts.session_error.reset();
    if (!opened) facts.session_error = opened.error();
    co_await session.close();
    again = !opened && session.wants_flow_control();
    options.flow_control = true;
  }
}

}  // namespace

task::Task<Attempt<void>> gather_tls(env::Env& env, fabric::Uri uri, TlsFacts& facts) {
  fabric::name_host(env, uri.options);
  facts.has_key = uri.options.tls_key != nullptr;
  uri.options.tls = true;
  if (!facts.has_key) uri.options.tls_key = made_up_key();
  facts.address = uri.paths.front().text();
  facts.host_nqn = uri.options.host_nqn;
  facts.nqn = uri.nqn;
  co_await shake_hands(env, uri, facts);
  if (facts.connect_error || facts.handshake_error) co_return Attempt<void>{};
  co_await greet(env, uri, facts);
  if (!facts.greeting_error) co_await connect(env, uri, facts);
  co_return Attempt<void>{};
}

}  // namespace cairn::apps::doctor
