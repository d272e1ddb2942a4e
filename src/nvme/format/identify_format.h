// SPDX-License-Identifier: Apache-2.0
// The Identify command (NVMe Base 2.0, 5.17) and its lists. The two big structures have headers of
// their own: identify_controller_format.h and identify_namespace_format.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/check.h"
#include "nvme/format/command_format.h"
#include "nvme/format/field.h"

namespace cairn::nvme {

// Every Identify structure, and every list of namespaces, has this size.
inline constexpr size_t kIdentifySize = 4096;

// CNS: which structure.
enum class Cns : uint8_t {
  kNamespace = 0x00,
  kController = 0x01,
  kActiveNamespaces = 0x02,
  kNamespaceDescriptors = 0x03,
  kNvmSetList = 0x04,
  kCommandSetNamespace = 0x05,
  kCommandSetController = 0x06,
  kCommandSetActiveNamespaces = 0x07,
  kIndependentNamespace = 0x08,
  kAllocatedNamespaces = 0x10,
  kAllocatedNamespace = 0x11,
  kNamespaceControllers = 0x12,
  kControllers = 0x13,
  kPrimaryControllerCapabilities = 0x14,
  kSecondaryControllers = 0x15,
  kNamespaceGranularity = 0x16,
  kUuids = 0x17,
  kDomains = 0x18,
  kEnduranceGroups = 0x19,
  kCommandSetAllocatedNamespaces = 0x1a,
  kCommandSetAllocatedNamespace = 0x1b,
  kCommandSets = 0x1c,
};

// CSI: I/O command set identifier.
enum class Csi : uint8_t { kNvm = 0x00, kKeyValue = 0x01, kZoned = 0x02 };

struct IdentifyFields {
  Cns cns = Cns::kNamespace;   // CNS
  uint16_t controller_id = 0;  // CNTID
  uint16_t specific_id = 0;    // CNSSID: meaning by CNS
  Csi csi = Csi::kNvm;         // CSI
  uint8_t uuid_index = 0;      // UIDX

  static constexpr IdentifyFields decode(const Sqe& sqe) {
    return {.cns = static_cast<Cns>(bits<7, 0>(sqe.cdw10)),
            .controller_id = static_cast<uint16_t>(bits<31, 16>(sqe.cdw10)),
            .specific_id = static_cast<uint16_t>(bits<15, 0>(sqe.cdw11)),
            .csi = static_cast<Csi>(bits<31, 24>(sqe.cdw11)),
            .uuid_index = static_cast<uint8_t>(bits<6, 0>(sqe.cdw14))};
  }
  constexpr void encode(Sqe& sqe) const {
    sqe.cdw10 = to_bits32<7, 0>(static_cast<uint8_t>(cns)) | to_bits32<31, 16>(controller_id);
    sqe.cdw11 = to_bits32<15, 0>(specific_id) | to_bits32<31, 24>(static_cast<uint8_t>(csi));
    sqe.cdw14 = to_bits32<6, 0>(uuid_index);
  }
  friend constexpr bool operator==(const IdentifyFields&, const IdentifyFields&) = default;
};

// CNS 02h and 07h: up to 1024 namespace identifiers above the one asked with, ascending, then
// zeroes.
struct NamespaceList {
  std::array<Le32, 1024> nsids{};
};
static_assert(sizeof(NamespaceList) == kIdentifySize);

// CNS 13h: controllers of the subsystem, ascending.
struct ControllerList {
  Le16 count;
  std::array<Le16, 2047> controller_ids{};
};
static_assert(sizeof(ControllerList) == kIdentifySize);
static_assert(offsetof(ControllerList, controller_ids) == 2);

// CNS 1Ch: per combination a vector of command sets; bit 0 is NVM.
struct CommandSetVectors {
  std::array<Le64, 512> vectors{};
};
static_assert(sizeof(CommandSetVectors) == kIdentifySize);

// NIDT: what kind of name a descriptor of CNS 03h holds.
enum class NamespaceIdType : uint8_t { kEui64 = 1, kNguid = 2, kUuid = 3, kCsi = 4 };

constexpr uint8_t length_of(NamespaceIdType type) {
  switch (type) {
    case NamespaceIdType::kEui64:
      return 8;
    case NamespaceIdType::kNguid:
    case NamespaceIdType::kUuid:
      return 16;
    case NamespaceIdType::kCsi:
      return 1;
  }
  return 0;
}

// The head of a descriptor; `length` bytes of identifier follow, then the next head.
struct NamespaceDescriptorHeader {
  NamespaceIdType type{};  // NIDT; 0 ends the list
  uint8_t length = 0;      // NIDL
  Reserved<2> unused{};
};
static_assert(sizeof(NamespaceDescriptorHeader) == 4);
static_assert(offsetof(NamespaceDescriptorHeader, length) == 1);

// Writes the descriptors of one namespace into a page of CNS 03h, one after the other.
class NamespaceDescriptorWriter {
 public:
  // `page` is kIdentifySize bytes of zeroes and outlives this.
  explicit NamespaceDescriptorWriter(MutableBytes page) : rest_(page) {}

  // `id` has the length its type asks for, and the page has room for it: one of each type fits
  // (CHECK).
  void add(NamespaceIdType type, Bytes id) {
    CHECK(id.size() == length_of(type));
    CHECK(rest_.size() >= sizeof(NamespaceDescriptorHeader) + id.size());
    store(rest_, NamespaceDescriptorHeader{.type = type, .length = length_of(type)});
    rest_ = rest_.subspan(sizeof(NamespaceDescriptorHeader));
    std::ranges::copy(id, rest_.begin());
    rest_ = rest_.subspan(id.size());
  }

 private:
  MutableBytes rest_;
};

struct NamespaceDescriptor {
  NamespaceIdType type{};
  Bytes id;  // borrowed from the page
};

// Reads a page of CNS 03h. Ends at a type of zero and at the first descriptor that does not fit;
// types it does not know are handed out like others.
class NamespaceDescriptorReader {
 public:
  explicit NamespaceDescriptorReader(Bytes page) : rest_(page) {}

  std::optional<NamespaceDescriptor> next() {
    if (rest_.size() < sizeof(NamespaceDescriptorHeader)) return std::nullopt;
    const auto head = load<NamespaceDescriptorHeader>(rest_);
    const Bytes after = rest_.subspan(sizeof head);
    if (head.type == NamespaceIdType{} || head.length > after.size()) return std::nullopt;
    rest_ = after.subspan(head.length);
    return NamespaceDescriptor{.type = head.type, .id = after.first(head.length)};
  }

 private:
  Bytes rest_;
};

}  // namespace cairn::nvme
