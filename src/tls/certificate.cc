// SPDX-License-Identifier: Apache-2.0
#include "tls/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>

#include "crypto/with.h"

namespace cairn::tls {

namespace {

using Text = std::unique_ptr<BIO, crypto::With<BIO_free>>;
using Owned = std::unique_ptr<X509, crypto::With<X509_free>>;

Text reader(const std::string& text) {
  return Text(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Owned next_certificate(const Text& text) {
  return Owned(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
}

// A key that is encrypted would be asked for at the terminal.
int no_password(char*, int, int, void*) { return -1; }

Result<void> use_chain(SSL_CTX* context, const std::string& chain) {
  const Text text = reader(chain);
  const Owned own = next_certificate(text);
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) {
    return fail(Errc::kInvalid, "there is no certificate in it");
  }
  for (Owned next = next_certificate(text); next != nullptr; next = next_certificate(text)) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) {
      return fail(Errc::kInvalid, "a certificate behind the first");
    }
  }
  return {};
}

Result<void> use_key(SSL_CTX* context, const std::string& key) {
  const Text text = reader(key);
  const std::unique_ptr<EVP_PKEY, crypto::With<EVP_PKEY_free>> own(
      PEM_read_bio_PrivateKey(text.get(), nullptr, &no_password, nullptr));
  if (own == nullptr) {
    return fail(Errc::kInvalid, "there is no private key in it, or one with a password");
  }
  if (SSL_CTX_use_PrivateKey(context, own.get()) != 1) {
    return fail(Errc::kInvalid, "the private key is not that of the certificate");
  }
  return {};
}

// Peers must show a certificate that one of these signed.
Result<void> demand(SSL_CTX* context, const std::string& signers) {
  const Text text = reader(signers);
  int count = 0;
  for (Owned next = next_certificate(text); next != nullptr; next = next_certificate(text)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), next.get()) != 1 ||
        SSL_CTX_add_client_CA(context, next.get()) != 1) {
      return fail(Errc::kInvalid, "a certificate of those who sign the peer's");
    }
    ++count;
  }
  if (count == 0) return fail(Errc::kInvalid, "there is no certificate of a signer in it");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

template <class T>
Result<void> check_in(const SSL_METHOD* method, const T& certificate) {
  const std::unique_ptr<SSL_CTX, crypto::With<SSL_CTX_free>> context(SSL_CTX_new(method));
  if (context == nullptr) return fail(Errc::kLimit, "libssl has no memory");
  return use_certificate(context.get(), certificate);
}

}  // namespace

Result<void> use_certificate(void* ssl_context, const Certificate& certificate) {
  auto* context = static_cast<SSL_CTX*>(ssl_context);
  Result<void> used = use_chain(context, certificate.chain);
  if (used) used = use_key(context, certificate.key);
  if (used && !certificate.clients.empty()) used = demand(context, certificate.clients);
  ERR_clear_error();
  return used;
}

Result<void> use_certificate(void* ssl_context, const ClientCertificate& certificate) {
  auto* context = static_cast<SSL_CTX*>(ssl_context);
  Result<void> used = demand(context, certificate.ca);
  if (used && !certificate.chain.empty()) used = use_chain(context, certificate.chain);
  if (used && !certificate.chain.empty()) used = use_key(context, certificate.key);
  ERR_clear_error();
  return used;
}

Result<void> check(const Certificate& certificate) {
  return check_in(TLS_server_method(), certificate);
}

Result<void> check(const ClientCertificate& certificate) {
  return check_in(TLS_client_method(), certificate);
}

}  // namespace cairn::tls
