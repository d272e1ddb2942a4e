// SPDX-License-Identifier: Apache-2.0
#include "bench/stranger_script.h"

#include <span>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/units.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/nqn.h"
#include "nvme/format/pdu_build.h"
#include "nvme/format/property_format.h"

namespace cairn::bench {

namespace {

using nvme::Sqe;

constexpr auto kUnserved = static_cast<nvme::AdminOpcode>(0x81);  // Security Send
constexpr uint16_t kConnectId = 1;
constexpr uint16_t kEnableId = 2;
constexpr uint16_t kFirstId = 3;
constexpr uint16_t kAgainId = 1000;
constexpr uint32_t kSmall = 4_KiB;
constexpr uint32_t kLarge = 64_KiB;  // the most that discovery gives at a time
constexpr size_t kGarbageSize = 4_KiB;

void append(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_greeting(std::vector<std::byte>& to) {
  std::vector<std::byte> request(sizeof(nvme::IcReq));
  nvme::build_ic_req(request, {});
  append(to, request);
}

void append_command(std::vector<std::byte>& to, const Sqe& sqe, Bytes data = {}) {
  std::vector<std::byte> capsule(nvme::kPduPrefixMax);
  capsule.resize(nvme::build_capsule_cmd(capsule, {}, sqe, static_cast<uint32_t>(data.size())));
  append(to, capsule);
  append(to, data);
}

void append_connect(std::vector<std::byte>& to) {
  nvme::ConnectCommand connect;
  connect.cid = kConnectId;
  connect.queue_size = 31;
  nvme::ConnectData data;
  data.host_id[0] = 0x5a;
  data.subsystem_nqn.set(nvme::kDiscoveryNqn);
  data.host_nqn.set("nqn.2026-11.io.cairn:stranger");
  append_command(to, nvme::to_sqe(connect), std::as_bytes(std::span(&data, 1)));
  nvme::PropertyCommand enable;
  enable.cid = kEnableId;
  enable.type = nvme::FabricsType::kPropertySet;
  enable.offset = static_cast<uint32_t>(nvme::PropertyOffset::kConfiguration);
  enable.value =
      nvme::Configuration{.enable = true, .submission_entry_size = 6, .completion_entry_size = 4}
          .encode();
  append_command(to, nvme::to_sqe(enable));
}

Sqe with_data(nvme::AdminOpcode opcode, uint16_t id, uint32_t bytes) {
  Sqe sqe = Sqe::make(opcode);
  sqe.cid = id;
  sqe.sgl1 = nvme::SglDescriptor::transport(bytes);
  return sqe;
}

Sqe discovery_log(uint16_t id) {
  Sqe sqe = with_data(nvme::AdminOpcode::kGetLogPage, id, kLarge);
  sqe.cdw10 = static_cast<uint32_t>(nvme::LogPage::kDiscovery) | (kLarge / 4 - 1) << 16;
  return sqe;
}

void append_discovery(std::vector<std::byte>& to) {
  append_greeting(to);
  append_connect(to);
  for (uint16_t i = 0; i < kStrangerCommands; ++i) {
    const auto id = static_cast<uint16_t>(kFirstId + i);
    if (i % 3 == 0) append_command(to, discovery_log(id));
    if (i % 3 == 1) append_command(to, with_data(nvme::AdminOpcode::kSetFeatures, id, kSmall));
    if (i % 3 == 2) append_command(to, with_data(kUnserved, id, kLarge));
  }
}

void append_garbage(std::vector<std::byte>& to) {
  std::vector<std::byte> garbage(kGarbageSize);
  Rng(1).fill(garbage);
  append(to, garbage);
}

}  // namespace

StrangerScript stranger_script(StrangerKind kind) {
  StrangerScript script;
  switch (kind) {
    case StrangerKind::kSilent:
      break;
    case StrangerKind::kGreeting:
      append_greeting(script.opening);
      break;
    case StrangerKind::kDiscovery:
      append_discovery(script.opening);
      append_command(script.again, with_data(kUnserved, kAgainId, kLarge));
      break;
    case StrangerKind::kGarbage:
      append_garbage(script.opening);
      break;
    case StrangerKind::kGreetingGarbage:
      append_greeting(script.opening);
      append_garbage(script.opening);
      break;
  }
  return script;
}

}  // namespace cairn::bench
