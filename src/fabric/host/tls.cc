// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/tls.h"

#include <utility>

#include "nvme/format/tcp_format.h"
#include "tls/stream.h"

namespace cairn::fabric {

namespace {

constexpr std::byte kTlsAlert{21};  // type of a record
constexpr std::byte kTlsMajor{3};

// A PDU that only a controller sends.
bool looks_like_nvme(const tls::HandshakeReport& report) {
  const Bytes first = Bytes(report.first).first(report.first_size);
  if (first.size() < sizeof(nvme::CommonHeader)) return false;
  const auto header = load<nvme::CommonHeader>(first);
  return header.type == nvme::PduType::kC2hTermReq || header.type == nvme::PduType::kIcResp;
}

}  // namespace

bool looks_like_tls_alert(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == kTlsAlert && bytes[1] == kTlsMajor;
}

Result<tls::Psk> psk_of(const HostTls& tls) {
  const nvme::TlsNames names{.host = tls.host_nqn, .subsystem = tls.nqn};
  Result<nvme::TlsPsk> psk = tls.key->psk_of(names, tls.version);
  if (!psk) return fail(psk.error());
  return tls::Psk{.identity = psk->identity.text(), .hash = psk->identity.hash, .key = psk->key};
}

Error handshake_error(const Error& error, const tls::HandshakeReport& report) {
  return looks_like_nvme(report) ? Error(Errc::kUnsupported, kTargetIsPlain) : error;
}

task::Task<Result<std::unique_ptr<env::Stream>>> secure(env::Env& env,
                                                        std::unique_ptr<env::Stream> plain,
                                                        const HostTls& tls, SecureWish wish,
                                                        task::CancelToken token) {
  Result<tls::Psk> psk = psk_of(tls);
  if (!psk) co_return fail(psk.error());
  auto stream = std::make_unique<tls::TlsStream>(env, std::move(plain), *tls.context,
                                                 std::move(*psk), wish.lingering);
  const Result<void> done = co_await stream->shake_hands(wish.timeout, token);
  if (!done) co_return fail(handshake_error(done.error(), stream->report()));
  co_return std::move(stream);
}

}  // namespace cairn::fabric
