// SPDX-License-Identifier: Apache-2.0
#include "tls/context.h"

#include <openssl/ssl.h>

#include "base/check.h"

namespace cairn::tls {

void Context::Free::operator()(void* context) const {
  SSL_CTX_free(static_cast<SSL_CTX*>(context));
}

Context::Context(Role role) : role_(role) {
  SSL_CTX* context = SSL_CTX_new(role == Role::kClient ? TLS_client_method() : TLS_server_method());
  CHECK(context != nullptr, "libssl has memory");
  context_.reset(context);
  const bool sound =
      SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256") == 1 &&
      SSL_CTX_set_num_tickets(context, 0) == 1;
  CHECK(sound, "libssl has TLS 1.3");
  // Without SSL_OP_ALLOW_NO_DHE_KEX a key alone, without (EC)DHE, is never enough.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

Context::Context(const Certificate& certificate) : Context(Role::kServer) {
  const Result<void> used = use_certificate(context_.get(), certificate);
  CHECK(used.has_value(), "the certificate was checked");
  has_certificate_ = true;
}

Context::Context(const ClientCertificate& certificate) : Context(Role::kClient) {
  const Result<void> used = use_certificate(context_.get(), certificate);
  CHECK(used.has_value(), "the certificate was checked");
  has_certificate_ = true;
}

Context::~Context() = default;

}  // namespace cairn::tls
