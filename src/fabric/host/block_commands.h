// SPDX-License-Identifier: Apache-2.0
// BlockCommands: how requests to a drive become NVMe commands for one namespace. It sends nothing
// and keeps nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "drive/drive.h"
#include "fabric/host/namespace_info.h"
#include "nvme/format/command_format.h"

namespace cairn::fabric {

// A command for a part of a request, without command id and data pointer.
struct BlockCommand {
  enum class Data : uint8_t {
    kNone,
    kRange,    // `range`
    kRequest,  // of the request's own, `length` bytes from `skip` on
  };
  nvme::Sqe sqe;
  Data data = Data::kNone;
  uint32_t skip = 0;
  uint32_t length = 0;
  std::array<std::byte, 16> range{};  // of a Dataset Management
};

class BlockCommands {
 public:
  // `info` outlives it, and may change.
  explicit BlockCommands(const NamespaceInfo& info) : info_(info) {}

  // kUnsupported: the target has no command for it; kInvalid: not for so many blocks.
  Result<void> can_do(const drive::Request& request) const;
  // How many blocks of a request go into the next command, when `done` have theirs. Reads and
  // writes are cut where their address is a multiple of a multiple of the atomic size, so that what
  // must be whole stays whole.
  uint64_t next_blocks(const drive::Request& request, uint64_t done) const;
  // The command for so many blocks of a request, from its block `first` on, counted from its own
  // first one. Of kCompareAndWrite the compare, without what makes two commands one.
  BlockCommand make(const drive::Request& request, uint64_t first, uint32_t blocks) const;

 private:
  bool discards_by_zeroes() const;

  const NamespaceInfo& info_;
};

}  // namespace cairn::fabric
