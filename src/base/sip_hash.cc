// SPDX-License-Identifier: Apache-2.0
#include "base/sip_hash.h"

#include <bit>

namespace cairn {

namespace {

class State {
 public:
  explicit State(const SipKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void add(uint64_t word) {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
  }
  uint64_t finish() {
    v2_ ^= 0xff;
    for (int round = 0; round < 4; ++round) mix();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void mix() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

}  // namespace

uint64_t sip_hash(const SipKey& key, Bytes bytes) {
  State state(key);
  uint64_t last = uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    state.add(load<uint64_t>(bytes));
  }
  for (size_t i = 0; i < bytes.size(); ++i) last |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  state.add(last);
  return state.finish();
}

uint64_t sip_hash(const SipKey& key, uint64_t value) {
  State state(key);
  state.add(value);
  state.add(uint64_t{sizeof value} << 56);
  return state.finish();
}

}  // namespace cairn
