// SPDX-License-Identifier: Apache-2.0
// The view of boxes for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "view/analysis.h"
#include "view/view.h"

namespace cairn::apps {

// All of it.
nlohmann::ordered_json view_json(const view::View& view);
// Drives and volumes alone.
nlohmann::ordered_json summary_json(const view::View& view);
nlohmann::ordered_json why_json(const view::View& view, const view::Why& why);

}  // namespace cairn::apps
