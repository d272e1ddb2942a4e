// SPDX-License-Identifier: Apache-2.0
#include "meta/security.h"

#include "tls/stream.h"

namespace cairn::meta {

namespace {

// A handshake's error in the words of a metadata server's clients.
Error explained(const Error& error, const tls::HandshakeReport& report) {
  if (looks_plain(Bytes(report.first).first(report.first_size))) {
    return {Errc::kUnsupported,
            "the metadata server speaks without TLS at this port: leave tls_key out, or give the "
            "server keys"};
  }
  if (error != Errc::kDenied) return error;
  return {Errc::kDenied,
          "the metadata server does not know this client's name, or has another key for it"};
}

// Without the port.
std::string ip_text(const env::Address& address) {
  std::string text = address.text();
  text.resize(text.rfind(':'));
  const bool has_brackets = text.starts_with('[');
  return has_brackets ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

task::Task<Result<std::unique_ptr<env::Stream>>> KeySecurity::secure(
    env::Env& env, Insecure plain, task::CancelToken token) const {
  auto stream = std::make_unique<tls::TlsStream>(env, std::move(plain.stream), context_, key_.psk(),
                                                 plain.lingering);
  const Result<void> done = co_await stream->shake_hands(plain.timeout, token);
  if (!done) co_return fail(explained(done.error(), stream->report()));
  co_return std::move(stream);
}

task::Task<Result<std::unique_ptr<env::Stream>>> CertificateSecurity::secure(
    env::Env& env, Insecure plain, task::CancelToken token) const {
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

}  // namespace cairn::meta
