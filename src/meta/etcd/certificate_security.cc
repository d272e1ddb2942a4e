// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd/certificate_security.h"

#include "tls/stream.h"

namespace cairn::meta::etcd {

namespace {

// Without the port.
std::string ip_text(const env::Address& address) {
  std::string text = address.text();
  text.resize(text.rfind(':'));
  const bool has_brackets = text.starts_with('[');
  return has_brackets ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

task::Task<Result<std::unique_ptr<env::Stream>>> CertificateSecurity::secure(
    env::Env& env, rpc::Insecure plain, task::CancelToken token) const {
  const tls::ServerName server{name_.empty() ? ip_text(plain.server) : name_};
  auto stream = std::make_unique<tls::TlsStream>(env, std::move(plain.stream), context_, server,
                                                 plain.lingering);
  const Result<void> done = co_await stream->shake_hands(plain.timeout, token);
  if (!done && done.error() == Errc::kReset && !stream->report().heard_anything) {
    co_return fail(Errc::kReset,
                   "etcd hung up at the first words of TLS: if it speaks without, leave ca, cert "
                   "and key out of its address");
  }
  if (!done) co_return fail(done.error());
  co_return std::move(stream);
}

}  // namespace cairn::meta::etcd
