// SPDX-License-Identifier: Apache-2.0
// The arithmetic is OpenSSL's BIGNUM in its constant-time form rather than EVP_PKEY, which draws
// its private exponents itself: then no simulation would repeat.
#include "crypto/dh.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/check.h"
#include "crypto/with.h"

namespace cairn::crypto {

namespace {

using Number = std::unique_ptr<BIGNUM, With<BN_clear_free>>;

const char* name_of(DhGroup group) {
  constexpr std::array kNames = {"ffdhe2048", "ffdhe3072", "ffdhe4096", "ffdhe6144", "ffdhe8192"};
  return kNames[static_cast<size_t>(group)];
}

Number prime_of(DhGroup group) {
  const std::unique_ptr<EVP_PKEY_CTX, With<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "DH", nullptr));
  CHECK(context != nullptr && EVP_PKEY_fromdata_init(context.get()) == 1, "libcrypto has DH");
  std::array parameters = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME,
                                                            const_cast<char*>(name_of(group)), 0),
                           OSSL_PARAM_construct_end()};
  EVP_PKEY* made = nullptr;
  const bool sound =
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_KEY_PARAMETERS, parameters.data()) == 1;
  const std::unique_ptr<EVP_PKEY, With<EVP_PKEY_free>> key(made);
  BIGNUM* prime = nullptr;
  CHECK(sound && EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_FFC_P, &prime) == 1,
        "libcrypto has the groups of RFC 7919");
  return Number(prime);
}

Number number_of(Bytes bytes) {
  Number number(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                          static_cast<int>(bytes.size()), nullptr));
  CHECK(number != nullptr, "libcrypto has memory");
  return number;
}

DhValue power(const BIGNUM& base, const DhSecret& secret, const BIGNUM& prime) {
  CHECK(secret.size() == kDhSecretSize, "a private exponent is complete");
  const Number exponent = number_of(secret.bytes());
  const std::unique_ptr<BN_CTX, With<BN_CTX_free>> context(BN_CTX_secure_new());
  const Number result(BN_new());
  CHECK(context != nullptr && result != nullptr, "libcrypto has memory");
  DhValue value(static_cast<size_t>(BN_num_bytes(&prime)));
  auto* to = reinterpret_cast<unsigned char*>(value.mutable_bytes().data());
  const bool sound = BN_mod_exp_mont_consttime(result.get(), &base, exponent.get(), &prime,
                                               context.get(), nullptr) == 1 &&
                     BN_bn2binpad(result.get(), to, static_cast<int>(value.size())) > 0;
  CHECK(sound, "numbers below an odd prime have powers");
  return value;
}

}  // namespace

size_t dh_size(DhGroup group) {
  constexpr std::array<size_t, 5> kSizes = {256, 384, 512, 768, 1024};
  return kSizes[static_cast<size_t>(group)];
}

DhValue dh_public(DhGroup group, const DhSecret& secret) {
  const Number generator(BN_new());
  CHECK(generator != nullptr && BN_set_word(generator.get(), 2) == 1, "libcrypto has memory");
  return power(*generator, secret, *prime_of(group));
}

std::optional<DhValue> dh_shared(DhGroup group, const DhSecret& secret, Bytes peer) {
  if (peer.size() != dh_size(group)) return std::nullopt;
  const Number prime = prime_of(group);
  const Number value = number_of(peer);
  // 0, 1 and p - 1 would make the secret known to everybody.
  const Number last(BN_dup(prime.get()));
  CHECK(last != nullptr && BN_sub_word(last.get(), 1) == 1, "libcrypto has memory");
  if (BN_is_zero(value.get()) || BN_is_one(value.get()) || BN_cmp(value.get(), last.get()) >= 0) {
    return std::nullopt;
  }
  return power(*value, secret, *prime);
}

}  // namespace cairn::crypto
