// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/check.h"
#include "crypto/with.h"

namespace cairn::crypto {

namespace {

const char* name_of(Hash hash) {
  return hash == Hash::kSha256 ? "SHA256" : hash == Hash::kSha384 ? "SHA384" : "SHA512";
}

const unsigned char* data_of(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Digest digest(Hash hash, std::initializer_list<Bytes> pieces) {
  const std::unique_ptr<EVP_MD, With<EVP_MD_free>> algorithm(
      EVP_MD_fetch(nullptr, name_of(hash), nullptr));
  const std::unique_ptr<EVP_MD_CTX, With<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  CHECK(algorithm != nullptr && context != nullptr, "libcrypto has SHA-2");
  bool sound = EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr) == 1;
  for (const Bytes piece : pieces) {
    sound = sound && EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1;
  }
  Digest out(digest_size(hash));
  unsigned int size = 0;
  auto* to = reinterpret_cast<unsigned char*>(out.mutable_bytes().data());
  sound = sound && EVP_DigestFinal_ex(context.get(), to, &size) == 1;
  CHECK(sound && size == out.size(), "SHA-2 takes any bytes");
  return out;
}

Digest hmac(Hash hash, Bytes key, std::initializer_list<Bytes> pieces) {
  const std::unique_ptr<EVP_MAC, With<EVP_MAC_free>> algorithm(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  CHECK(algorithm != nullptr, "libcrypto has HMAC");
  const std::unique_ptr<EVP_MAC_CTX, With<EVP_MAC_CTX_free>> context(
      EVP_MAC_CTX_new(algorithm.get()));
  CHECK(context != nullptr, "libcrypto has memory");
  const std::array parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(name_of(hash)), 0),
      OSSL_PARAM_construct_end()};
  bool sound = EVP_MAC_init(context.get(), data_of(key), key.size(), parameters.data()) == 1;
  for (const Bytes piece : pieces) {
    sound = sound && EVP_MAC_update(context.get(), data_of(piece), piece.size()) == 1;
  }
  Digest out(digest_size(hash));
  size_t size = 0;
  auto* to = reinterpret_cast<unsigned char*>(out.mutable_bytes().data());
  sound = sound && EVP_MAC_final(context.get(), to, &size, out.size()) == 1;
  CHECK(sound && size == out.size(), "HMAC takes any bytes");
  return out;
}

}  // namespace cairn::crypto
