// SPDX-License-Identifier: Apache-2.0
#include "rpc/security.h"

#include "rpc/wire_format.h"
#include "tls/stream.h"

namespace cairn::rpc {

task::Task<Result<std::unique_ptr<env::Stream>>> KeySecurity::secure(
    env::Env& env, Insecure plain, task::CancelToken token) const {
  auto stream = std::make_unique<tls::TlsStream>(env, std::move(plain.stream), context_, key_.psk(),
                                                 plain.lingering);
  const Result<void> done = co_await stream->shake_hands(plain.timeout, token);
  if (done) co_return std::move(stream);
  const tls::HandshakeReport& report = stream->report();
  if (looks_plain(Bytes(report.first).first(report.first_size))) {
    co_return fail(Errc::kUnsupported, texts_.lacks_tls);
  }
  if (done.error() == Errc::kDenied) co_return fail(Errc::kDenied, texts_.unknown_key);
  co_return fail(done.error());
}

}  // namespace cairn::rpc
