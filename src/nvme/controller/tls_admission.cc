// SPDX-License-Identifier: Apache-2.0
// Which key a TLS handshake is about, and whether Connect then names the same host and subsystem
// (NVMe/TCP 1.1, 3.6.1).
#include <utility>

#include "nvme/controller/registry_state.h"
#include "task/deadline.h"

namespace cairn::nvme {

namespace {

// A key's PSK for the names in `identity`, if that is what the client means.
Result<TlsPsk> matching_psk(const TlsKey& key, const TlsIdentity& identity) {
  if (key.hash() != identity.hash) {
    return fail(Errc::kDenied, "the host has a TLS key of another hash");
  }
  const TlsNames names{.host = identity.host_nqn, .subsystem = identity.nqn};
  Result<TlsPsk> psk = key.psk_of(names, identity.version);
  if (!psk) return fail(Errc::kDenied, psk.error().what());
  if (psk->identity.digest != identity.digest) {
    return fail(Errc::kDenied, "the host has another TLS key: the digest in its identity differs");
  }
  return psk;
}

// Whom a client calls itself first.
std::string name_in(const TlsOffer& offer) {
  for (const std::string& text : offer.identities) {
    if (const Result<TlsIdentity> identity = TlsIdentity::parse(text)) return identity->host_nqn;
  }
  return "";
}

}  // namespace

Result<void> Registry::set_tls(std::string_view nqn, TlsKeys keys) {
  Subsystem* subsystem = state_->find(nqn);
  if (subsystem == nullptr) return fail(Errc::kNotFound, "there is no such subsystem");
  subsystem->tls_keys = std::move(keys);
  return {};
}

AuthTotals Registry::tls_totals() const { return state_->tls_totals; }

// The discovery service has no keys of its own: whoever may use a subsystem here may ask it.
Result<TlsPsk> Registry::State::find_tls_key(const TlsIdentity& identity,
                                             const env::Address& local) {
  Error why(Errc::kDenied, "its TLS identity names a subsystem that is not served here");
  const PortOptions* port = find_port(local, ports);
  for (const auto& [nqn, subsystem] : subsystems) {
    if (identity.nqn != nqn && identity.nqn != kDiscoveryNqn) continue;
    if (port != nullptr && !port->serves(nqn)) continue;
    const auto key = subsystem->tls_keys.find(identity.host_nqn);
    if (key == subsystem->tls_keys.end()) {
      why = Error(Errc::kDenied, "there is no TLS key for this host");
    } else if (!subsystem->allows(identity.host_nqn)) {
      why = Error(Errc::kDenied, "this host may not use the subsystem");
    } else {
      Result<TlsPsk> psk = matching_psk(key->second, identity);
      if (psk) return psk;
      why = psk.error();
    }
  }
  return fail(why);
}

task::Task<Result<TlsPsk>> Registry::choose_tls_key(const TlsOffer& offer,
                                                    task::CancelToken token) {
  State& state = *state_;
  TlsFailure failure{.peer = offer.peer, .why = "it offers no TLS key", .is_guess = true};
  const Result<Time> turn = state.limiter.take_turn(
      {.peer = offer.peer, .host_nqn = name_in(offer)}, state.env.now(), offer.wait_max);
  if (!turn) {
    state.note_stranger(
        {.host_nqn = name_in(offer), .peer = offer.peer, .why = turn.error().what()});
    co_return fail(turn.error());
  }
  const Result<void> slept = co_await task::sleep_until(state.env, *turn, token);
  if (!slept) co_return fail(slept.error());
  for (const std::string& text : offer.identities) {
    Result<TlsIdentity> identity = TlsIdentity::parse(text);
    if (!identity) {
      failure.why = "its TLS identity is not one of NVMe";
      continue;
    }
    Result<TlsPsk> psk = state.find_tls_key(*identity, offer.local);
    if (psk) co_return psk;
    failure.why = psk.error().what();
    if (!failure.identity) failure.identity = std::move(*identity);
  }
  tls_failed(failure);
  co_return fail(Errc::kDenied, failure.why);
}

void Registry::tls_failed(const TlsFailure& failure) {
  const TlsIdentity identity = failure.identity.value_or(TlsIdentity{});
  if (failure.is_guess) {
    state_->limiter.failed({.peer = failure.peer, .host_nqn = identity.host_nqn},
                           state_->env.now());
  }
  ++state_->tls_totals.failed;
  state_->note_stranger({.nqn = identity.nqn,
                         .host_nqn = identity.host_nqn,
                         .peer = failure.peer,
                         .why = failure.why});
}

void Registry::tls_succeeded(const env::Address& peer, std::string_view host_nqn) {
  state_->limiter.succeeded({.peer = peer, .host_nqn = std::string(host_nqn)});
  ++state_->tls_totals.succeeded;
}

// A host that has proven who it is may not go on as somebody else, nor elsewhere.
bool Registry::State::agrees_with_tls(const ConnectRequest& request, std::string_view nqn,
                                      std::string_view host_nqn) {
  if (request.tls == nullptr) return true;
  if (request.tls->host_nqn == host_nqn && request.tls->nqn == nqn) return true;
  note_stranger({.nqn = std::string(nqn),
                 .host_nqn = std::string(host_nqn),
                 .peer = request.peer,
                 .why = "its Connect names another host or subsystem than its TLS key"});
  ++tls_totals.failed;
  return false;
}

}  // namespace cairn::nvme
