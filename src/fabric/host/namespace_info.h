// SPDX-License-Identifier: Apache-2.0
// NamespaceInfo: what a host needs to know of a namespace to use it as a Drive.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "drive/drive.h"
#include "fabric/host/session.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

// The largest request a remote drive takes; it is split into commands the controller takes.
inline constexpr uint32_t kRemoteRequestMax = 4 << 20;

// Which namespace is meant: the one with this UUID, or, where that is all zero, the one with this
// nsid. A UUID is never another's; an nsid may be when its namespace is gone.
struct NamespaceName {
  uint32_t nsid = 1;
  std::array<uint8_t, 16> uuid{};

  bool has_uuid() const { return uuid != std::array<uint8_t, 16>{}; }
};

struct NamespaceInfo {
  uint32_t nsid = 0;
  drive::Geometry geometry;
  std::array<uint8_t, 16> nguid{};  // all zero: it has none, as with the others
  std::array<uint8_t, 16> uuid{};
  std::array<uint8_t, 8> eui64{};
  uint32_t ana_group = 0;
  bool is_shared = false;
  drive::Incarnation incarnation;  // all zero: the target does not tell

  uint32_t command_blocks = 0;        // of one read, write or compare
  uint32_t compare_write_blocks = 0;  // of a fused pair; 0: there is none
  uint32_t zeroes_blocks = 0;         // of one Write Zeroes; 0: there is none
  uint32_t discard_blocks = 0;        // of one deallocation; 0: there is none
  uint32_t copy_blocks = 0;           // of one Copy of one range; 0: there is none
  bool can_compare = false;
  bool zeroes_can_deallocate = false;   // Write Zeroes may give space back
  bool deallocated_reads_zero = false;  // so that a deallocation is a discard
  uint8_t reservations = 0;             // RESCAP; 0: there are none

  // Whether two controllers of one subsystem speak of the same blocks.
  bool is_same(const NamespaceInfo& other) const;
};

// What the Identify pages of a controller and a namespace say. kNotFound: there is no such
// namespace; kUnsupported: its format is none a Drive can have.
struct NamespacePages {
  const nvme::IdentifyController& controller;
  const nvme::IdentifyControllerNvm& limits;
  const nvme::IdentifyNamespace& space;
  uint32_t transfer_max = 0;  // bytes of one command
  uint32_t page_size = 4096;  // 2 ^ (12 + CAP.MPSMIN)
  bool can_fuse = false;
};
Result<NamespaceInfo> describe(uint32_t nsid, const NamespacePages& pages);

// Asks the controller for all of it. Errors also as identify().
task::Task<Result<NamespaceInfo>> read_namespace(HostSession& session, uint32_t nsid,
                                                 task::CancelToken token);
task::Task<Result<NamespaceInfo>> read_namespace(HostSession& session, NamespaceName name,
                                                 task::CancelToken token);

// The namespaces that the controller shows this host, ascending; 65536 at most.
task::Task<Result<std::vector<uint32_t>>> active_namespaces(HostSession& session,
                                                            task::CancelToken token);
// The nsid of the one that is meant. kNotFound: none that this host is shown has the UUID.
task::Task<Result<uint32_t>> find_nsid(HostSession& session, NamespaceName name,
                                       task::CancelToken token);

}  // namespace cairn::fabric
