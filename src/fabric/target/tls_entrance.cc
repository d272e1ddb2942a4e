// SPDX-License-Identifier: Apache-2.0
#include "fabric/target/tls_entrance.h"

#include <utility>

#include "env/call.h"
#include "nvme/format/tcp_format.h"
#include "task/deadline.h"
#include "tls/stream.h"

namespace cairn::fabric {

namespace {

constexpr std::byte kTlsHandshake{22};  // type of a record
constexpr std::byte kTlsMajor{3};       // of every version since SSL 3.0

// The control core's half. The token is of the connection's core, hence a deadline of its own.
task::Task<Result<nvme::TlsPsk>> choose_on_control(env::Env& env, nvme::Registry& registry,
                                                   const nvme::TlsOffer& offer, Duration timeout) {
  task::Deadline deadline(env, env.now() + timeout, env.stop_token());
  Result<nvme::TlsPsk> psk = co_await registry.choose_tls_key(offer, deadline.token());
  co_return psk;
}

}  // namespace

bool looks_like_ic_req(Bytes bytes) {
  if (bytes.size() < sizeof(nvme::CommonHeader)) return false;
  const auto header = load<nvme::CommonHeader>(bytes);
  return header.type == nvme::PduType::kIcReq && header.header_length == sizeof(nvme::IcReq) &&
         header.length == sizeof(nvme::IcReq);
}

bool looks_like_client_hello(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == kTlsHandshake && bytes[1] == kTlsMajor;
}

task::Task<std::optional<SecureStream>> TlsEntrance::admit(std::unique_ptr<env::Stream> plain,
                                                           task::Gate& lingering) {
  local_ = plain->local();
  peer_ = plain->peer();
  tls::PskKeeper& keeper = *this;
  auto stream =
      std::make_unique<tls::TlsStream>(core_.env, std::move(plain), context_, keeper, lingering);
  const Result<void> done = co_await stream->shake_hands(core_.options.handshake_timeout, token_);
  if (!done) {
    const tls::HandshakeReport& report = stream->report();
    co_await note(done.error(), looks_like_ic_req(Bytes(report.first).first(report.first_size)));
    co_return std::nullopt;
  }
  co_await env::call_on(core_.env, core_.control, [this](env::Env&) {
    core_.registry.tls_succeeded(peer_, identity_->host_nqn);
  });
  co_return SecureStream{
      .stream = std::move(stream),
      .identity = std::make_unique<const nvme::TlsIdentity>(std::move(*identity_))};
}

task::Task<Result<tls::Psk>> TlsEntrance::choose(std::vector<std::string> identities) {
  const nvme::TlsOffer offer{.identities = std::move(identities),
                             .local = local_,
                             .peer = peer_,
                             .wait_max = core_.options.handshake_timeout / 2};
  Result<nvme::TlsPsk> psk = co_await env::call_on(core_.env, core_.control, [&](env::Env& there) {
    return choose_on_control(there, core_.registry, offer, core_.options.handshake_timeout);
  });
  if (!psk) {
    was_noted_ = psk.error() == Errc::kDenied || psk.error() == Errc::kLimit;
    co_return fail(psk.error());
  }
  identity_ = psk->identity;
  co_return tls::Psk{.identity = psk->identity.text(), .hash = psk->identity.hash, .key = psk->key};
}

task::Task<void> TlsEntrance::note(const Error& error, bool speaks_nvme) {
  if (was_noted_ || error == Errc::kCancelled) co_return;
  const nvme::TlsFailure failure{
      .identity = identity_,
      .peer = peer_,
      .why = speaks_nvme ? "it speaks plain NVMe/TCP, and this listener demands TLS" : error.what(),
      .is_guess = error == Errc::kDenied};
  co_await env::call_on(core_.env, core_.control,
                        [&](env::Env&) { core_.registry.tls_failed(failure); });
}

}  // namespace cairn::fabric
