// SPDX-License-Identifier: Apache-2.0
// Identify and health pages, decoded: one row per field, named as nvme-cli names it.
#pragma once

#include <cstdint>

#include "apps/nvme/fields.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/log_format.h"

namespace cairn::apps {

// `page_size` is that of CAP.MPSMIN, which MDTS counts in.
FieldTable fields_of(const nvme::IdentifyController& page, uint32_t page_size);
FieldTable fields_of(const nvme::IdentifyNamespace& page);
FieldTable fields_of(const nvme::HealthPage& page);

}  // namespace cairn::apps
