// SPDX-License-Identifier: Apache-2.0
// What holds for all PDUs: those we build are taken, and no bytes at all get past the rules
// unmeasured.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/rng.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"
#include "nvme/format/pdu.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/tcp_format.h"
#include "testing/nvme/hex.h"

namespace cairn::nvme {
namespace {

struct Sample {
  PduRules rules;
  std::array<std::byte, kTermReqMax> bytes{};
  size_t size = 0;
};

PduRules random_rules(Rng& rng, End receiver) {
  return {.receiver = receiver,
          .established = rng.bernoulli(0.8),
          .header_digest = rng.bernoulli(0.5),
          .data_digest = rng.bernoulli(0.5),
          .data_alignment = static_cast<uint8_t>(rng.below(kDataAlignmentMax + 1)),
          .h2c_data_max = static_cast<uint32_t>(rng.between(1, 64) * 4096),
          .in_capsule_max = static_cast<uint32_t>(rng.below(17) * 512)};
}

// A PDU that its receiver must take.
Sample random_sample(Rng& rng) {
  Sample sample{.rules = random_rules(rng, rng.bernoulli(0.5) ? End::kHost : End::kController)};
  const PduRules& rules = sample.rules;
  const PduStyle style{rules.header_digest, rules.data_digest, rules.data_alignment};
  const bool host = rules.receiver == End::kHost;
  if (rng.bernoulli(0.1)) {
    const auto header = hex("aa*40");
    sample.size = build_term_req(sample.bytes, host ? End::kController : End::kHost,
                                 {FatalError::kSequence, 0}, header);
    return sample;
  }
  if (!rules.established) {
    sample.size = host ? build_ic_resp(sample.bytes,
                                       {.header_digest = rules.header_digest, .h2c_data_max = 8192})
                       : build_ic_req(sample.bytes, {.data_digest = true, .r2t_max = 3});
    return sample;
  }
  const DataPiece piece{
      .cid = static_cast<uint16_t>(rng.next()),
      .ttag = static_cast<uint16_t>(rng.next()),
      .offset = static_cast<uint32_t>(rng.below(1024) * 4),
      .length = static_cast<uint32_t>(rng.between(1, rules.h2c_data_max / 4) * 4)};
  Sqe sqe;
  rng.fill(mutable_bytes_of(sqe));
  Cqe cqe;
  rng.fill(mutable_bytes_of(cqe));
  const auto length =
      static_cast<uint32_t>(rng.bernoulli(0.5) ? 0 : rng.below(rules.in_capsule_max + 1));
  switch (rng.below(3) + (host ? 3 : 0)) {
    case 0:
    case 1:
      sample.size = build_capsule_cmd(sample.bytes, style, sqe, length);
      break;
    case 2:
      sample.size = build_h2c_data(sample.bytes, style, piece, rng.bernoulli(0.5));
      break;
    case 3:
      sample.size = build_capsule_resp(sample.bytes, style, cqe);
      break;
    case 4:
      sample.size = build_c2h_data(sample.bytes, style, piece, static_cast<C2hEnd>(rng.below(3)));
      break;
    default:
      sample.size = build_r2t(sample.bytes, style, piece);
      break;
  }
  return sample;
}

// A PDU's parts add up, and a fault names a place inside the header. Returns whether it was taken.
bool expect_sane(const Bytes& header, const PduRules& rules) {
  const PduResult<Pdu> pdu = check_pdu(header, rules);
  const auto common = load<CommonHeader>(header);
  if (pdu) {
    EXPECT_GE(pdu->header_size, sizeof(TermReq));
    EXPECT_LE(pdu->header_size, kHeaderMax);
    EXPECT_GE(pdu->data_offset, pdu->header_size);
    EXPECT_EQ(uint64_t{pdu->data_offset} + pdu->data_length + (pdu->data_digest ? 4 : 0),
              pdu->length);
    return true;
  }
  switch (pdu.error().error) {
    case FatalError::kInvalidHeader:
    case FatalError::kUnsupportedParameter:
      EXPECT_LT(pdu.error().information,
                std::max<uint32_t>(sizeof(CommonHeader), header_length_of(common.type)));
      break;
    case FatalError::kHeaderDigest:
      EXPECT_EQ(pdu.error().information,
                load<Le32>(header.subspan(header_length_of(common.type), kDigestSize)));
      break;
    default:
      EXPECT_EQ(pdu.error().information, 0u);
      break;
  }
  return false;
}

TEST(Pdu, WhatIsBuiltIsTaken) {
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    const Sample sample = random_sample(rng);
    const PduResult<Pdu> pdu = check_pdu(sample.bytes, sample.rules);
    ASSERT_TRUE(pdu) << text(pdu.error(), sample.rules.receiver);
    const bool term = TermReq::describes(pdu->type);
    EXPECT_EQ(term ? pdu->length : pdu->data_offset, sample.size);
  }
}

TEST(Pdu, MutationsAreTakenOrFaultedInsideTheHeader) {
  Rng rng(8);
  constexpr int kRounds = 100000;
  int taken = 0;
  for (int i = 0; i < kRounds; ++i) {
    Sample sample = random_sample(rng);
    for (uint64_t flips = rng.between(1, 4); flips > 0; --flips) {
      // Most of what is judged is in the first bytes.
      const uint64_t at = rng.bernoulli(0.7) ? rng.below(24) : rng.below(kHeaderMax);
      sample.bytes[at] = static_cast<std::byte>(rng.next());
    }
    if (rng.bernoulli(0.2)) sample.rules = random_rules(rng, sample.rules.receiver);
    taken += expect_sane(sample.bytes, sample.rules) ? 1 : 0;
  }
  EXPECT_GT(taken, kRounds / 20);
  EXPECT_LT(taken, kRounds * 19 / 20);
}

TEST(Pdu, NoiseIsTakenOrFaultedInsideTheHeader) {
  Rng rng(9);
  std::array<std::byte, kHeaderMax> noise{};
  for (int i = 0; i < 50000; ++i) {
    rng.fill(noise);
    noise[0] = static_cast<std::byte>(rng.below(12));
    expect_sane(noise, random_rules(rng, rng.bernoulli(0.5) ? End::kHost : End::kController));
  }
}

}  // namespace
}  // namespace cairn::nvme
