// SPDX-License-Identifier: Apache-2.0
// Keys of TLS handshakes (NVMe/TCP 1.1, 3.6.1).
#include <utility>

#include "nvme/controller/log_pages.h"
#include "nvme/controller/registry_parts.h"

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

// The discovery service has no keys of its own: whoever may use a subsystem here may ask it.
Result<TlsPsk> TlsAdmission::find_key(const TlsIdentity& identity,
                                      const env::Address& local) const {
  Error why(Errc::kDenied, "its TLS identity names a subsystem that is not served here");
  const PortOptions* port = find_port(local, table_.ports());
  for (const auto& [nqn, subsystem] : table_.all()) {
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

task::Task<Result<TlsPsk>> TlsAdmission::choose_key(const TlsOffer& offer,
                                                    task::CancelToken token) {
  TlsFailure failure{.peer = offer.peer, .why = "it offers no TLS key", .is_guess = true};
  const Result<void> turn = co_await strangers_.take_turn(
      {.host_nqn = name_in(offer), .peer = offer.peer}, offer.wait_max, token);
  if (!turn) co_return fail(turn.error());
  for (const std::string& text : offer.identities) {
    Result<TlsIdentity> identity = TlsIdentity::parse(text);
    if (!identity) {
      failure.why = "its TLS identity is not one of NVMe";
      continue;
    }
    Result<TlsPsk> psk = find_key(*identity, offer.local);
    if (psk) co_return psk;
    failure.why = psk.error().what();
    if (!failure.identity) failure.identity = std::move(*identity);
  }
  failed(failure);
  co_return fail(Errc::kDenied, failure.why);
}

void TlsAdmission::failed(const TlsFailure& failure) {
  const TlsIdentity identity = failure.identity.value_or(TlsIdentity{});
  if (failure.is_guess) {
    strangers_.failed({.peer = failure.peer, .host_nqn = identity.host_nqn});
  }
  ++totals_.failed;
  strangers_.note({.nqn = identity.nqn,
                   .host_nqn = identity.host_nqn,
                   .peer = failure.peer,
                   .why = failure.why});
}

void TlsAdmission::succeeded(const env::Address& peer, std::string_view host_nqn) {
  strangers_.succeeded({.peer = peer, .host_nqn = std::string(host_nqn)});
  ++totals_.succeeded;
}

bool TlsAdmission::agrees(const ConnectRequest& request, std::string_view nqn,
                          std::string_view host_nqn) {
  if (request.tls == nullptr) return true;
  if (request.tls->host_nqn == host_nqn && request.tls->nqn == nqn) return true;
  strangers_.note({.nqn = std::string(nqn),
                   .host_nqn = std::string(host_nqn),
                   .peer = request.peer,
                   .why = "its Connect names another host or subsystem than its TLS key"});
  ++totals_.failed;
  return false;
}

}  // namespace cairn::nvme
