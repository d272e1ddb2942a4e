// SPDX-License-Identifier: Apache-2.0
#include "server/open/store.h"

#include <fmt/format.h>

#include <utility>

#include "base/words.h"
#include "meta/etcd/certificate_security.h"
#include "meta/etcd/etcd_store.h"
#include "meta/remote_store.h"
#include "rack/client_keys.h"
#include "rpc/security.h"
#include "server/common/holder_retry.h"
#include "server/open/key_file.h"
#include "world/rocks/rocks_store.h"

namespace cairn::server {

namespace {

const char* advice(const Error& error) {
  if (error == Errc::kExists) {
    return "another process has it open: have that one serve it with 'cairn rack serve', and name "
           "meta://ADDRESS here";
  }
  if (error == Errc::kNotFound) return "make the folder that it is to be in";
  if (error == Errc::kCorrupt) return "restore it from a copy, or name another folder";
  return "name a folder that this user may write to";
}

// Null: nothing is encrypted.
Attempt<std::shared_ptr<const rpc::Security>> security_of(const StoreUri& uri) {
  if (!uri.ca.empty()) {
    const Attempt<tls::ClientCertificate> certificate =
        read_client_certificate({.ca = uri.ca, .chain = uri.cert, .key = uri.key});
    if (!certificate) return std::unexpected(certificate.error());
    return std::make_shared<const meta::etcd::CertificateSecurity>(*certificate, uri.name);
  }
  if (uri.tls_key.empty()) return nullptr;
  const Attempt<nvme::TlsKey> key = read_tls_key_file(uri.tls_key);
  if (!key) return std::unexpected(key.error());
  Result<rpc::NamedKey> named = rack::named_key(uri.name, *key);
  if (!named) {
    return refuse(fmt::format("name={}: {}", in_quotes(uri.name), named.error().what()));
  }
  return std::make_shared<const rpc::KeySecurity>(std::move(*named), meta::error_texts());
}

}  // namespace

task::Task<Attempt<std::unique_ptr<meta::Store>>> open_store(env::Env& env, StoreUri uri) {
  return open_store(env, std::move(uri), {});
}

task::Task<Attempt<std::unique_ptr<meta::Store>>> open_store(
    env::Env& env, StoreUri uri, std::function<void(std::string)> on_refused) {
  if (uri.kind != StoreUri::Kind::kFolder) {
    Attempt<std::shared_ptr<const rpc::Security>> security = security_of(uri);
    if (!security) co_return std::unexpected(security.error());
    if (uri.kind == StoreUri::Kind::kEtcd) {
      const meta::etcd::LinesOptions options{.servers = uri.servers,
                                             .security = std::move(*security),
                                             .on_refused = std::move(on_refused)};
      co_return meta::etcd::etcd_store(env, options);
    }
    co_return meta::remote_store(env, {.servers = uri.servers,
                                       .security = std::move(*security),
                                       .on_refused = std::move(on_refused)});
  }
  Result<std::unique_ptr<meta::Store>> store = fail(Errc::kClosed, "not tried");
  HolderRetry retry(env);
  for (bool again = true; again;) {
    store = co_await rocks::open_rocks_store(env, {.folder = uri.folder});
    again = co_await retry.after(store);
  }
  if (!store) {
    co_return refuse(fmt::format("the metadata in {} cannot be opened: {}: {}",
                                 in_quotes(uri.folder), store.error().text(),
                                 advice(store.error())));
  }
  co_return std::move(*store);
}

}  // namespace cairn::server
