// SPDX-License-Identifier: Apache-2.0
// What a FakeTarget answers.
#include <algorithm>
#include <cstring>
#include <memory>

#include "host/fake_target.h"
#include "nvme/format/dsm_format.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/log_format.h"
#include "nvme/format/property_format.h"

namespace cairn::host_tests {

using nvme::AdminOpcode;
using nvme::IoOpcode;
using nvme::Status;
using nvme::StatusCode;

void FakeConnection::fabrics(const nvme::Sqe& sqe, Bytes data) {
  using nvme::FabricsType;
  using nvme::PropertyOffset;
  const FakeOptions& options = target_.options;
  if (sqe.fabrics_type() == FabricsType::kConnect) {
    const auto command = nvme::fabrics_cast<nvme::ConnectCommand>(sqe);
    target_.last_command = command;
    target_.last_connect = load<nvme::ConnectData>(data);
    const Result<std::string_view> nqn = target_.last_connect.subsystem_nqn.get();
    if (!options.any_nqn && nqn != kNqn && nqn != nvme::kDiscoveryNqn) {
      const nvme::ConnectInvalid invalid{.offset = 256, .in_data = true};
      return respond(sqe.cid, nvme::final_status(StatusCode::kConnectInvalidParameters),
                     invalid.encode());
    }
    queue_id_ = command.queue_id;
    ++(queue_id_ == 0 ? target_.connects : target_.io_connects);
    if (queue_id_ > 0) rules_.in_capsule_max = options.in_capsule_max;
    return respond(sqe.cid, {}, 5);
  }
  const auto command = nvme::fabrics_cast<nvme::PropertyCommand>(sqe);
  const auto offset = static_cast<PropertyOffset>(command.offset.value());
  if (sqe.fabrics_type() == FabricsType::kPropertySet) {
    configuration_ = static_cast<uint32_t>(command.value);
    const auto decoded = nvme::Configuration::decode(configuration_);
    if (decoded.shutdown != nvme::ShutdownNotice::kNone) ++target_.shutdowns;
    return respond(sqe.cid, {});
  }
  uint64_t value = 0;
  if (offset == PropertyOffset::kCapabilities) {
    value = nvme::Capabilities{.queue_entries_max = options.entries_max,
                               .timeout_500ms = 10,
                               .command_sets = nvme::CommandSets::kNvm}
                .encode();
  } else if (offset == PropertyOffset::kVersion) {
    value = nvme::Version{.major = 2}.encode();
  } else if (offset == PropertyOffset::kStatus) {
    const bool enabled = nvme::Configuration::decode(configuration_).enable;
    value =
        nvme::ControllerStatus{.ready = enabled && csts_reads_++ >= options.never_ready}.encode();
  }
  respond(sqe.cid, {}, value);
}

void FakeConnection::admin(const nvme::Sqe& sqe) {
  switch (sqe.admin_opcode()) {
    case AdminOpcode::kIdentify:
      return identify(sqe);
    case AdminOpcode::kGetLogPage:
      return log_page(sqe);
    case AdminOpcode::kAsynchronousEventRequest:
      event_requests.push_back(sqe.cid);
      return;
    case AdminOpcode::kSetFeatures: {
      const auto fields = nvme::SetFeaturesFields::decode(sqe);
      uint32_t result = 0;
      if (fields.feature == nvme::Feature::kNumberOfQueues) {
        auto asked = nvme::NumberOfQueues::decode(fields.value);
        const auto max = static_cast<uint16_t>(target_.options.queues_max - 1);
        asked.submission = std::min(asked.submission, max);
        asked.completion = std::min(asked.completion, max);
        result = asked.encode();
      }
      return respond(sqe.cid, {}, result);
    }
    case AdminOpcode::kKeepAlive:
      return respond(sqe.cid, {});
    case AdminOpcode::kAbort:
      return respond(sqe.cid, {}, 1);
    default:
      return respond(sqe.cid, nvme::final_status(StatusCode::kInvalidOpcode));
  }
}

void FakeConnection::identify(const nvme::Sqe& sqe) {
  const FakeOptions& options = target_.options;
  const auto fields = nvme::IdentifyFields::decode(sqe);
  if (fields.cns == nvme::Cns::kController) {
    auto page = std::make_unique<nvme::IdentifyController>();
    page->controller_id = 5;
    page->transfer_max = options.mdts;
    page->multipath = nvme::Cmic::kControllers;
    if (options.ana) page->multipath |= nvme::Cmic::kAna;
    page->events = nvme::EventMask::kNamespaceAttributes | nvme::EventMask::kAna;
    page->log_attributes = nvme::Lpa::kExtendedData;
    page->keep_alive_100ms = 1;
    page->ana_group_max = page->ana_groups = 1;
    page->namespaces = 1;
    page->nvm_commands = options.oncs;
    page->fused = options.fuses;
    page->write_cache = options.write_cache;
    page->command_capsule = (64 + options.in_capsule_max) / 16;
    page->response_capsule = 1;
    page->controller_type = nvme::ControllerType::kIo;
    return send_data(sqe.cid, nvme::bytes_of(*page));
  }
  if (fields.cns == nvme::Cns::kNamespaceDescriptors) {
    std::vector<std::byte> page(nvme::kIdentifySize);
    nvme::NamespaceDescriptorWriter writer(page);
    writer.add(nvme::NamespaceIdType::kNguid, std::as_bytes(std::span(target_.medium->nguid)));
    return send_data(sqe.cid, page);
  }
  if (fields.cns != nvme::Cns::kNamespace || sqe.nsid != 1) {
    return respond(sqe.cid, nvme::final_status(StatusCode::kInvalidField));
  }
  auto page = std::make_unique<nvme::IdentifyNamespace>();
  page->size = page->capacity = page->used = target_.medium->blocks;
  page->features = nvme::Nsfeat::kAtomic | nvme::Nsfeat::kOptimal;
  page->atomic_write_power_fail = options.atomic_power_fail;
  page->atomic_compare_write = 15;
  page->write_granularity = 7;
  page->deallocate = options.deallocate;
  page->multipath = nvme::Nmic::kShared;
  page->nguid = target_.medium->nguid;
  page->ana_group = 1;
  page->lba_formats[0].block_shift = 9;
  send_data(sqe.cid, nvme::bytes_of(*page));
}

void FakeConnection::log_page(const nvme::Sqe& sqe) {
  const FakeOptions& options = target_.options;
  const auto fields = nvme::GetLogFields::decode(sqe);
  std::vector<std::byte> page(fields.offset + fields.length());
  if (fields.page == nvme::LogPage::kAna) {
    store(page, nvme::AnaHeader{.change_count = 1, .groups = 1});
    nvme::AnaGroup group{.group_id = 1};
    group.set_state(options.ana_state);
    if (page.size() >= sizeof(nvme::AnaHeader) + sizeof group) {
      store(MutableBytes(page).subspan(sizeof(nvme::AnaHeader)), group);
    }
  } else if (fields.page == nvme::LogPage::kDiscovery) {
    const nvme::DiscoveryHeader header{.generation = options.generation,
                                       .records = options.discovery.size()};
    std::vector<std::byte> all(sizeof header +
                               options.discovery.size() * sizeof(nvme::DiscoveryEntry));
    store(all, header);
    for (size_t i = 0; i < options.discovery.size(); ++i) {
      store(MutableBytes(all).subspan((i + 1) * sizeof(nvme::DiscoveryEntry)),
            options.discovery[i]);
    }
    std::memcpy(page.data(), all.data(), std::min(page.size(), all.size()));
  }
  send_data(sqe.cid, Bytes(page).subspan(fields.offset));
}

void FakeConnection::io(const nvme::Sqe& sqe, MutableBytes data, bool answer) {
  FakeMedium& medium = *target_.medium;
  const auto fields = nvme::BlockFields::decode(sqe);
  const uint64_t begin = fields.start.value() * FakeMedium::kBlock;
  const uint64_t length = uint64_t{fields.blocks} * FakeMedium::kBlock;
  const IoOpcode opcode = sqe.io_opcode();
  const bool has_range = opcode != IoOpcode::kFlush && opcode != IoOpcode::kDatasetManagement;
  if (has_range && begin + length > medium.bytes.size()) {
    return respond(sqe.cid, nvme::final_status(StatusCode::kLbaOutOfRange));
  }
  const MutableBytes at =
      has_range ? MutableBytes(medium.bytes).subspan(begin, length) : MutableBytes();
  Status status;
  switch (opcode) {
    case IoOpcode::kFlush:
      break;
    case IoOpcode::kRead:
      if (answer) send_data(sqe.cid, at);
      return;
    case IoOpcode::kWrite:
      if (sqe.fuse() == nvme::Fuse::kSecond && fused_failed_) {
        status = StatusCode::kAbortedFailedFused;
      } else {
        std::ranges::copy(data, at.begin());
      }
      break;
    case IoOpcode::kCompare:
      if (!std::ranges::equal(data, at)) status = StatusCode::kCompareFailure;
      fused_failed_ = !status.ok();
      break;
    case IoOpcode::kWriteZeroes:
      std::ranges::fill(at, std::byte{0});
      break;
    case IoOpcode::kDatasetManagement: {
      const auto range = load<nvme::DsmRange>(data);
      std::ranges::fill(MutableBytes(medium.bytes)
                            .subspan(range.start * FakeMedium::kBlock,
                                     uint64_t{range.blocks} * FakeMedium::kBlock),
                        std::byte{0});
      break;
    }
    default:
      status = nvme::final_status(StatusCode::kInvalidOpcode);
  }
  if (answer) respond(sqe.cid, status);
}

}  // namespace cairn::host_tests
