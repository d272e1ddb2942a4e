// SPDX-License-Identifier: Apache-2.0
// Whatever a host gets wrong about a PDU: the TermReq says what and where, the connection ends, and
// the box serves the next host as if nothing had been.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nvme/format/tcp_format.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

WORLD_TEST_SUITE(Malformed);

using nvme::CommonHeader;
using nvme::DataPdu;
using nvme::Le32;
using nvme::PduType;

// How far the host got before it sent nonsense.
enum class Stage : uint8_t { kDialled, kGreeted, kGreetedWithDigests, kConnected };

struct Case {
  const char* name;
  Stage stage;
  std::vector<std::byte> bytes;
  FatalError error;
  uint32_t information = 0;
};

std::vector<std::byte> ic_req() {
  std::vector<std::byte> bytes(sizeof(nvme::IcReq));
  nvme::build_ic_req(bytes, {});
  return bytes;
}
std::vector<std::byte> keep_alive(nvme::PduStyle style = {}) {
  Sqe sqe = Sqe::make(nvme::AdminOpcode::kKeepAlive);
  sqe.cid = 9;
  std::vector<std::byte> bytes(nvme::kPduPrefixMax);
  bytes.resize(nvme::build_capsule_cmd(bytes, style, sqe, 0));
  return bytes;
}
std::vector<std::byte> data(uint32_t length) {
  std::vector<std::byte> bytes(nvme::kPduPrefixMax);
  bytes.resize(nvme::build_h2c_data(bytes, {}, {.cid = 1, .ttag = 0, .length = length}, true));
  bytes.resize(bytes.size() + length);
  return bytes;
}
std::vector<std::byte> with(std::vector<std::byte> bytes, size_t at, uint8_t value) {
  bytes[at] = std::byte{value};
  return bytes;
}
std::vector<std::byte> with_length(std::vector<std::byte> bytes, uint32_t length) {
  store(MutableBytes(bytes).subspan(offsetof(CommonHeader, length)), Le32(length));
  return bytes;
}
std::vector<std::byte> header_of(PduType type, uint8_t header_length) {
  const CommonHeader common{.type = type, .header_length = header_length, .length = header_length};
  std::vector<std::byte> bytes(header_length);
  store(bytes, common);
  return bytes;
}

std::vector<Case> cases() {
  using enum Stage;
  using enum FatalError;
  constexpr nvme::PduStyle kDigests = {.header_digest = true, .data_digest = true};
  constexpr auto kFlags = offsetof(CommonHeader, flags);
  constexpr auto kHlen = offsetof(CommonHeader, header_length);
  constexpr auto kPdo = offsetof(CommonHeader, data_offset);
  constexpr auto kPlen = offsetof(CommonHeader, length);
  std::vector<std::byte> bad_digest = keep_alive(kDigests);
  bad_digest[72] ^= std::byte{1};
  const uint32_t received_digest = load<Le32>(Bytes(bad_digest).subspan(72));
  return {
      {"reserved type", kDialled, with(ic_req(), 0, 0x0b), kInvalidHeader, 0},
      {"a type of the other direction", kDialled, with(ic_req(), 0, 0x01), kInvalidHeader, 0},
      {"a response from a host", kConnected, header_of(PduType::kCapsuleResp, 24), kInvalidHeader,
       0},
      {"an R2T from a host", kConnected, header_of(PduType::kR2t, 24), kInvalidHeader, 0},
      {"C2HData from a host", kConnected, header_of(PduType::kC2hData, 24), kInvalidHeader, 0},
      {"a command before ICReq", kDialled, keep_alive(), kSequence},
      {"data before ICReq", kDialled, data(4), kSequence},
      {"a second ICReq", kGreeted, ic_req(), kSequence},
      {"an ICReq when connected", kConnected, ic_req(), kSequence},
      {"HLEN of ICReq", kDialled, with(ic_req(), kHlen, 127), kInvalidHeader, kHlen},
      {"PLEN of ICReq", kDialled, with_length(ic_req(), 132), kInvalidHeader, kPlen},
      {"PFV", kDialled, with(ic_req(), 8, 1), kInvalidHeader, 8},
      {"HPDA", kDialled, with(ic_req(), 10, 32), kInvalidHeader, 10},
      {"HLEN of a command", kGreeted, with(keep_alive(), kHlen, 64), kInvalidHeader, kHlen},
      {"PLEN below the header", kGreeted, with_length(keep_alive(), 71), kInvalidHeader, kPlen},
      {"PDO inside the header", kGreeted, with_length(with(keep_alive(), kPdo, 68), 80),
       kInvalidHeader, kPdo},
      {"PDO no multiple of four", kGreeted, with_length(with(keep_alive(), kPdo, 73), 80),
       kInvalidHeader, kPdo},
      {"PDO behind the end", kGreeted, with_length(with(keep_alive(), kPdo, 84), 80),
       kInvalidHeader, kPdo},
      {"in-capsule data beyond 8 KiB", kConnected,
       with_length(with(keep_alive(), kPdo, 72), 72 + 8196), kInvalidHeader, kPlen},
      {"PLEN of four gigabytes", kConnected, with_length(with(keep_alive(), kPdo, 72), UINT32_MAX),
       kInvalidHeader, kPlen},
      {"a digest that was not agreed on", kGreeted, with(keep_alive(), kFlags, 1), kInvalidHeader,
       kFlags},
      {"no digest where one was agreed on", kGreetedWithDigests, keep_alive(), kInvalidHeader,
       kFlags},
      {"a wrong header digest", kGreetedWithDigests, bad_digest, kHeaderDigest, received_digest},
      {"H2CData that nobody asked for", kConnected, data(4), kInvalidHeader,
       offsetof(DataPdu, ttag)},
      {"H2CData with a tag beyond all", kConnected, with(data(4), 11, 0xff), kInvalidHeader,
       offsetof(DataPdu, ttag)},
      {"DATAL zero", kConnected, with(with_length(data(4), 24), 16, 0), kInvalidHeader,
       offsetof(DataPdu, length)},
      {"DATAL that is not PLEN's", kConnected, with(data(4), 16, 8), kInvalidHeader, kPlen},
      {"DATAO no multiple of four", kConnected, with(data(4), 12, 2), kInvalidHeader,
       offsetof(DataPdu, offset)},
      {"H2CData beyond MAXH2CDATA", kConnected, data(nvme::kTransferBytesMax + 4), kLimitExceeded},
  };
}

Task<void> reach(RawHost& host, env::Address box, Stage stage) {
  co_await host.dial(std::move(box));
  if (stage == Stage::kDialled) co_return;
  const bool digests = stage == Stage::kGreetedWithDigests;
  co_await host.greet({.header_digest = digests, .data_digest = digests});
  if (stage == Stage::kConnected) {
    const nvme::Cqe cqe = co_await host.connect({});
    EXPECT_TRUE(cqe.get_status().ok()) << text_of(cqe);
  }
}

WORLD_TEST(Malformed, IsToldWhatAndWhereThenClosed) {
  Box box(env);
  co_await box.open(scene.any_port());
  for (const Case& each : cases()) {
    RawHost host(env);
    co_await reach(host, box.address, each.stage);
    const Result<void> sent = co_await host.send(each.bytes);
    EXPECT_TRUE(sent.has_value());
    co_await expect_term_req(host, each.error, each.information, each.name);
  }
  RawHost next(env);
  co_await next.arrive(box.address);
  next.stream.reset();
  co_await box.close();
}

WORLD_TEST(Malformed, IsReportedToOurselvesWithTheAddress) {
  std::vector<fabric::HostFault> faults;
  BoxOptions options;
  options.target.on_fault = [&](const fabric::HostFault& fault) { faults.push_back(fault); };
  Box box(env, options);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await reach(host, box.address, Stage::kConnected);
  co_await host.deliver(ic_req());
  co_await expect_term_req(host, FatalError::kSequence, 0, "a second ICReq");
  host.stream.reset();
  co_await box.close();
  EXPECT_EQ(faults.size(), 1u);
  for (const fabric::HostFault& fault : faults) {
    EXPECT_EQ(fault.fault.error, FatalError::kSequence);
    EXPECT_EQ(fault.type, PduType::kIcReq);
    EXPECT_NE(fault.peer.text(), box.address.text());
  }
}

// The faulty header comes back with the TermReq.
WORLD_TEST(Malformed, HeaderIsSentBack) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.dial(box.address);
  const std::vector<std::byte> bad = with(ic_req(), 8, 1);
  co_await host.deliver(bad);
  const std::optional<Received> pdu = co_await host.receive();
  EXPECT_EQ(name_of(pdu), "C2HTermReq");
  if (pdu) {
    EXPECT_TRUE(std::ranges::equal(Bytes(pdu->bytes).subspan(sizeof(nvme::TermReq)), bad));
  }
  host.stream.reset();
  co_await box.close();
}

// ICReq and nonsense in one segment: both are answered, in order.
WORLD_TEST(Malformed, GreetingIsNotLostBehindAFault) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.dial(box.address);
  std::vector<std::byte> both = ic_req();
  const std::vector<std::byte> again = ic_req();
  both.insert(both.end(), again.begin(), again.end());
  co_await host.deliver(both);
  const std::optional<Received> first = co_await host.receive();
  EXPECT_EQ(name_of(first), "ICResp");
  co_await expect_term_req(host, FatalError::kSequence, 0, "second ICReq");
  host.stream.reset();
  co_await box.close();
}

// A host that gives up says so; a malformed TermReq is not answered either.
WORLD_TEST(Malformed, TermReqOfAHostEndsWithoutAnAnswer) {
  Box box(env);
  co_await box.open(scene.any_port());
  for (const uint32_t length : {24u, 152u, 20u, 160u, 0u}) {
    RawHost host(env);
    co_await reach(host, box.address, Stage::kConnected);
    std::vector<std::byte> bytes(152);
    nvme::TermReq request;
    request.common = {
        .type = PduType::kH2cTermReq, .header_length = sizeof(nvme::TermReq), .length = length};
    request.fatal_error = 1;
    store(bytes, request);
    const Result<void> sent = co_await host.send(bytes);
    EXPECT_TRUE(sent.has_value());
    co_await expect_end(host);
  }
  co_await box.close();
}

}  // namespace
}  // namespace cairn::target_tests
