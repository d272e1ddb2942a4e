// SPDX-License-Identifier: Apache-2.0
#include "nvme/format/admin_data.h"

#include "nvme/format/feature_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/limits.h"
#include "nvme/format/log_format.h"

namespace cairn::nvme {

namespace {

size_t feature_data_size(Feature feature, uint32_t value) {
  switch (feature) {
    case Feature::kHostBehavior:
      return sizeof(HostBehavior);
    case Feature::kHostId:
      return (value & kHostIdExtended) != 0 ? sizeof(HostIdData) : sizeof(HostIdData) / 2;
    default:
      return 0;
  }
}

}  // namespace

std::expected<size_t, Status> admin_data_size(const Sqe& sqe) {
  switch (sqe.admin_opcode()) {
    case AdminOpcode::kIdentify:
      return kIdentifySize;
    case AdminOpcode::kGetLogPage: {
      const uint64_t bytes = GetLogFields::decode(sqe).length();
      if (bytes > kTransferBytesMax)
        return std::unexpected(final_status(StatusCode::kInvalidField));
      return static_cast<size_t>(bytes);
    }
    case AdminOpcode::kSetFeatures: {
      const SetFeaturesFields fields = SetFeaturesFields::decode(sqe);
      return feature_data_size(fields.feature, fields.value);
    }
    case AdminOpcode::kGetFeatures: {
      const GetFeaturesFields fields = GetFeaturesFields::decode(sqe);
      // Capabilities are told in the completion alone.
      if (fields.select >= FeatureSelect::kCapabilities) return size_t{0};
      return feature_data_size(fields.feature, fields.value);
    }
    default:
      return size_t{0};
  }
}

}  // namespace cairn::nvme
