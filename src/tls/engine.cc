// SPDX-License-Identifier: Apache-2.0
#include "tls/engine.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "crypto/with.h"
#include "tls/alert.h"
#include "tls/client_hello.h"

namespace cairn::tls {

namespace {

const unsigned char* data_of(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// The one cipher suite that goes with a key.
const char* suite_of(crypto::Hash hash) {
  return hash == crypto::Hash::kSha256 ? "TLS_AES_128_GCM_SHA256" : "TLS_AES_256_GCM_SHA384";
}

// A session as OpenSSL wants a key; null when it has no memory for it.
SSL_SESSION* session_of(SSL* ssl, const Psk& psk) {
  const std::array<unsigned char, 2> id = {
      0x13, static_cast<unsigned char>(psk.hash == crypto::Hash::kSha256 ? 1 : 2)};
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, id.data());
  SSL_SESSION* session = SSL_SESSION_new();
  const bool sound =
      session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, data_of(psk.key.bytes()), psk.key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (sound) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

// Of the ClientHello being looked at; empty when it has none of this type.
Bytes extension_of(SSL* ssl, unsigned int type) {
  const unsigned char* bytes = nullptr;
  size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, type, &bytes, &size) != 1) return {};
  return std::as_bytes(std::span(bytes, size));
}

// How a client is told that it is refused.
Alert alert_for(const Error& refusal) {
  if (refusal == Errc::kDenied) return Alert::kUnknownPskIdentity;
  return refusal == Errc::kUnsupported ? Alert::kProtocolVersion : Alert::kInternalError;
}

}  // namespace

struct Engine::Handle {
  std::unique_ptr<SSL, crypto::With<SSL_free>> ssl;
  std::unique_ptr<BIO, crypto::With<BIO_free>> network;  // our end of the pair; ssl has the other
};

// Called by OpenSSL from inside SSL_do_handshake and SSL_read.
struct Engine::Callbacks {
  static Engine& engine_of(const SSL* ssl) { return *static_cast<Engine*>(SSL_get_app_data(ssl)); }

  static int use_session(SSL* ssl, const EVP_MD* md, const unsigned char** id, size_t* id_size,
                         SSL_SESSION** session) {
    const Psk& psk = engine_of(ssl).psk_;
    *session = nullptr;
    // After a HelloRetryRequest the server has chosen a hash; with another one we have no key.
    const bool fits = md == nullptr || static_cast<size_t>(EVP_MD_get_size(md)) == psk.key.size();
    if (!fits) return 1;
    *id = data_of(as_bytes(psk.identity));
    *id_size = psk.identity.size();
    *session = session_of(ssl, psk);
    return *session != nullptr ? 1 : 0;
  }

  static int find_session(SSL* ssl, const unsigned char* id, size_t id_size,
                          SSL_SESSION** session) {
    const Engine& engine = engine_of(ssl);
    *session = nullptr;
    const Bytes offered = std::as_bytes(std::span(id, id_size));
    if (!engine.has_choice_ || as_text(offered) != engine.psk_.identity) return 1;
    *session = session_of(ssl, engine.psk_);
    return *session != nullptr ? 1 : 0;
  }

  // The key decides which cipher suite it is, hence it is chosen before anything else.
  static int client_hello(SSL* ssl, int* alert, void*) {
    Engine& engine = engine_of(ssl);
    const Bytes versions = extension_of(ssl, TLSEXT_TYPE_supported_versions);
    if (!engine.refusal_ && !offers_tls13(versions)) {
      engine.refusal_ = Error(Errc::kUnsupported, "the peer does not speak TLS 1.3");
    }
    if (engine.refusal_) {
      *alert = static_cast<int>(alert_for(*engine.refusal_));
      return SSL_CLIENT_HELLO_ERROR;
    }
    if (engine.has_choice_) {
      if (SSL_set_ciphersuites(ssl, suite_of(engine.psk_.hash)) == 1)
        return SSL_CLIENT_HELLO_SUCCESS;
      *alert = static_cast<int>(Alert::kInternalError);
      return SSL_CLIENT_HELLO_ERROR;
    }
    engine.offered_.clear();
    auto identities = offered_identities(extension_of(ssl, TLSEXT_TYPE_psk));
    if (identities) engine.offered_ = std::move(*identities);
    return SSL_CLIENT_HELLO_RETRY;
  }

  static int refuse_certificate(int, X509_STORE_CTX* store) {
    const void* ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    engine_of(static_cast<const SSL*>(ssl)).report_.showed_certificate = true;
    return 0;
  }

  static void note(const SSL* ssl, int where, int value) {
    if (where == SSL_CB_READ_ALERT) {
      engine_of(ssl).report_.alert = static_cast<uint8_t>(value & 0xff);
    }
  }

  static void message(int is_ours, int, int content, const void* bytes, size_t size, SSL*,
                      void* engine) {
    const bool is_server_hello = is_ours == 0 && content == SSL3_RT_HANDSHAKE && size > 0 &&
                                 *static_cast<const unsigned char*>(bytes) == SSL3_MT_SERVER_HELLO;
    if (is_server_hello) static_cast<Engine*>(engine)->report_.heard_server_hello = true;
  }
};

Engine::Engine(const Context& context, Psk psk) : role_(Role::kClient), psk_(std::move(psk)) {
  attach(context);
  SSL* ssl = handle_->ssl.get();
  // A server that does not take our key is not to be trusted, whatever it shows instead.
  SSL_set_verify(ssl, SSL_VERIFY_PEER, &Callbacks::refuse_certificate);
  SSL_set_psk_use_session_callback(ssl, &Callbacks::use_session);
  CHECK(SSL_set_ciphersuites(ssl, suite_of(psk_.hash)) == 1, "the suites are TLS 1.3's own");
  SSL_set_connect_state(ssl);
}

Engine::Engine(const Context& context, const ServerName& server) : role_(Role::kClient) {
  CHECK(context.has_certificate(), "it is known whose certificates are trusted");
  attach(context);
  has_certificate_ = true;
  SSL* ssl = handle_->ssl.get();
  // The names are those of subjectAltName alone (RFC 6125, 6.4.4; RFC 9525, 2).
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(
      param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(param, server.text.c_str()) == 1;
  const bool is_set =
      is_address || (X509_VERIFY_PARAM_set1_host(param, server.text.data(), server.text.size()) &&
                     SSL_set_tlsext_host_name(ssl, server.text.c_str()) == 1);
  // A name that cannot be one is no certificate's: without it any would do.
  if (!is_set || server.text.empty())
    failure_.emplace(Errc::kInvalid, "no name that a server can have");
  ERR_clear_error();
  SSL_set_connect_state(ssl);
}

void Engine::judge_at(WallTime now) {
  X509_VERIFY_PARAM_set_time(SSL_get0_param(handle_->ssl.get()), now.ns / 1'000'000'000);
}

Engine::Engine(const Context& context) : role_(Role::kServer) {
  attach(context);
  SSL* ssl = handle_->ssl.get();
  has_certificate_ = context.has_certificate();
  if (!has_certificate_) {
    SSL_set_psk_find_session_callback(ssl, &Callbacks::find_session);
    SSL_CTX_set_client_hello_cb(SSL_get_SSL_CTX(ssl), &Callbacks::client_hello, nullptr);
  }
  SSL_set_accept_state(ssl);
}

Engine::~Engine() = default;

void Engine::attach(const Context& context) {
  CHECK(context.role() == role_);
  handle_ = std::make_unique<Handle>();
  handle_->ssl.reset(SSL_new(static_cast<SSL_CTX*>(context.context_.get())));
  BIO* inside = nullptr;
  BIO* outside = nullptr;
  const bool sound =
      handle_->ssl != nullptr && BIO_new_bio_pair(&inside, kBufferSize, &outside, kBufferSize) == 1;
  CHECK(sound, "libssl has memory");
  handle_->network.reset(outside);
  SSL* ssl = handle_->ssl.get();
  SSL_set_bio(ssl, inside, inside);
  CHECK(SSL_set_app_data(ssl, this) == 1);
  SSL_set_info_callback(ssl, &Callbacks::note);
  SSL_set_msg_callback(ssl, &Callbacks::message);
  SSL_set_msg_callback_arg(ssl, this);
}

// --- the peer's side ----------------------------------------------------------------------------

MutableBytes Engine::input_room() {
  char* room = nullptr;
  const int size = BIO_nwrite0(handle_->network.get(), &room);
  CHECK(size > 0, "whatever came was taken before more is asked for");
  return {reinterpret_cast<std::byte*>(room), static_cast<size_t>(size)};
}

void Engine::input_came(size_t count) {
  if (count == 0) return;
  char* came = nullptr;
  const int taken = BIO_nwrite(handle_->network.get(), &came, static_cast<int>(count));
  CHECK(taken == static_cast<int>(count));
  if (report_.first_size == report_.first.size()) return;
  report_.heard_anything = true;
  const size_t part = std::min(count, report_.first.size() - report_.first_size);
  const Bytes begin(reinterpret_cast<const std::byte*>(came), part);
  std::ranges::copy(begin, report_.first.begin() + static_cast<ptrdiff_t>(report_.first_size));
  report_.first_size += part;
}

Bytes Engine::output() {
  char* bytes = nullptr;
  const int size = BIO_nread0(handle_->network.get(), &bytes);
  return {reinterpret_cast<const std::byte*>(bytes), static_cast<size_t>(std::max(size, 0))};
}

void Engine::output_left(size_t count) {
  if (count == 0) return;
  char* bytes = nullptr;
  const int taken = BIO_nread(handle_->network.get(), &bytes, static_cast<int>(count));
  CHECK(taken == static_cast<int>(count));
}

bool Engine::has_room_for_record() {
  return BIO_ctrl_pending(handle_->network.get()) + kRecordRoom <= kBufferSize;
}

// --- failing ------------------------------------------------------------------------------------

Engine::Step Engine::fail_with(const Error& error) {
  if (!failure_) failure_ = error;
  ERR_clear_error();
  return Step::kFailed;
}

Engine::Step Engine::failed_certificate() {
  switch (SSL_get_verify_result(handle_->ssl.get())) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fail_with({Errc::kDenied, "the peer's certificate has expired"});
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fail_with({Errc::kDenied, "the peer's certificate is not valid yet"});
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fail_with({Errc::kDenied, "the peer's certificate is for another name or address"});
    default:
      return fail_with({Errc::kDenied, "the peer's certificate is not signed by ours"});
  }
}

Engine::Step Engine::failed_handshake() {
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (report_.alert != 0) return fail_with(error_of(report_.alert));
  if (refusal_) return fail_with(*refusal_);
  if (report_.showed_certificate) {
    return fail_with({Errc::kDenied, "the peer ignored our TLS key and showed a certificate"});
  }
  // Whatever went wrong first while it was looked at: that is about the certificate.
  const bool was_judged = SSL_get_verify_result(handle_->ssl.get()) != X509_V_OK;
  if (has_certificate_ && was_judged) return failed_certificate();
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_DIGEST_CHECK_FAILED:
      return fail_with({Errc::kDenied, "the peer has another TLS key"});
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return fail_with({Errc::kDenied, "the peer shows no certificate"});
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_WRONG_SSL_VERSION:
      return fail_with({Errc::kUnsupported, "the peer does not speak TLS 1.3"});
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_WRONG_CIPHER_RETURNED:
      return fail_with({Errc::kUnsupported, "the peer has no cipher in common with us"});
    default:
      return fail_with({Errc::kReset, "the peer broke the rules of TLS", reason});
  }
}

Engine::Step Engine::failed_read() {
  if (report_.alert != 0) {
    // A server looks at a client's certificate when the client has shaken hands already.
    const Error said = error_of(report_.alert);
    const bool is_refusal = has_certificate_ && said == Errc::kDenied;
    return fail_with({is_refusal ? Errc::kDenied : Errc::kReset, said.what(), report_.alert});
  }
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC) {
    return fail_with({Errc::kReset, "a TLS record was changed on its way"});
  }
  return fail_with({Errc::kReset, "the peer broke the rules of TLS", reason});
}

// --- the handshake ------------------------------------------------------------------------------

// A record of TLS begins with its type: 20 to 23.
bool Engine::looks_like_tls() {
  const auto type = std::to_integer<unsigned>(report_.first[0]);
  return type >= 20 && type <= 23;
}

Engine::Step Engine::shake_hands() {
  if (failure_) return Step::kFailed;
  if (report_.heard_anything && !report_.heard_tls) {
    if (!looks_like_tls()) return fail_with({Errc::kUnsupported, "the peer does not speak TLS"});
    report_.heard_tls = true;
  }
  SSL* ssl = handle_->ssl.get();
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl);
  if (result == 1) {
    report_.cipher = SSL_get_cipher_name(ssl);
    if (has_certificate_) return Step::kDone;
    if (SSL_session_reused(ssl) != 1) {
      return fail_with({Errc::kDenied, "the peer ignored our TLS key"});
    }
    // The key is not needed any more, neither ours nor the copies that OpenSSL has.
    constexpr std::array<unsigned char, crypto::kDigestMax> kNothing{};
    SSL_SESSION_set1_master_key(SSL_get_session(ssl), kNothing.data(), kNothing.size());
    psk_.key = {};
    return Step::kDone;
  }
  switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
      return Step::kWantsChoice;
    case SSL_ERROR_WANT_READ:
      if (!input_ended_) return Step::kWantsInput;
      return fail_with({Errc::kReset, "the peer hung up in the middle of the TLS handshake"});
    case SSL_ERROR_WANT_WRITE:
      return fail_with({Errc::kReset, "the peer made the TLS handshake longer than any"});
    default:
      return failed_handshake();
  }
}

void Engine::choose(Result<Psk> choice) {
  if (choice) {
    psk_ = std::move(*choice);
    has_choice_ = true;
  } else {
    refusal_ = choice.error();
  }
}

// --- plain text ---------------------------------------------------------------------------------

Engine::Step Engine::read(MutableBytes into, size_t& count) {
  count = 0;
  if (failure_) return Step::kFailed;
  SSL* ssl = handle_->ssl.get();
  ERR_clear_error();
  const int result = SSL_read_ex(ssl, into.data(), into.size(), &count);
  if (result == 1) return Step::kDone;
  switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnd;
    case SSL_ERROR_WANT_READ:
      if (!input_ended_) return Step::kWantsInput;
      return fail_with({Errc::kReset, "the peer ended without TLS's close_notify: cut short?"});
    case SSL_ERROR_WANT_WRITE:
      // Answers to requests for new keys wait for our next write; nobody needs so many.
      return fail_with({Errc::kReset, "the peer asks for new TLS keys all the time"});
    default:
      return failed_read();
  }
}

bool Engine::write(Bytes from) {
  if (failure_) return false;
  CHECK(!from.empty() && from.size() <= kPlainMax && has_room_for_record());
  SSL* ssl = handle_->ssl.get();
  ERR_clear_error();
  size_t written = 0;
  if (SSL_write_ex(ssl, from.data(), from.size(), &written) == 1) {
    CHECK(written == from.size(), "there was room for all of it");
    return true;
  }
  fail_with({Errc::kReset, "TLS cannot encrypt any more", ERR_GET_REASON(ERR_peek_error())});
  return false;
}

void Engine::close_notify() {
  if (failure_) return;
  ERR_clear_error();
  const int said = SSL_shutdown(handle_->ssl.get());
  if (said < 0) ERR_clear_error();  // there was no room for it: the peer sees the end without
}

}  // namespace cairn::tls
