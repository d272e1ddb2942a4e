// SPDX-License-Identifier: Apache-2.0
// The admin commands a host needs, as calls. Each fails as CommandOp does, and with error_of() the
// status that was answered.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "fabric/host/session.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/log_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

struct IdentifyRequest {
  nvme::IdentifyFields fields;
  uint32_t nsid = 0;
};
// Fills `page`, kIdentifySize bytes. kCorrupt: fewer came.
task::Task<Result<void>> identify(HostSession& session, IdentifyRequest request, MutableBytes page,
                                  task::CancelToken token);

struct LogRequest {
  nvme::LogPage page{};
  uint8_t specific = 0;
  uint32_t nsid = nvme::kBroadcastNsid;
  uint64_t offset = 0;
  bool retain_event = false;  // of the last piece; those before always retain it
};
// Fills `into`, a multiple of 4 bytes, in pieces the controller can take. kUnsupported: more than
// one piece is needed, or an offset, and the controller has no offsets in log pages.
task::Task<Result<void>> get_log(HostSession& session, LogRequest request, MutableBytes into,
                                 task::CancelToken token);

// Dword 0 of the answer: for some features what was granted.
task::Task<Result<uint32_t>> set_feature(HostSession& session, nvme::Feature feature,
                                         uint32_t value, task::CancelToken token);
task::Task<Result<uint32_t>> get_feature(HostSession& session, nvme::GetFeaturesFields fields,
                                         task::CancelToken token);

}  // namespace cairn::fabric
