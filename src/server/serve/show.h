// SPDX-License-Identifier: Apache-2.0
// Layers of drives, for programs, people and Prometheus.
#pragma once

#include <string>

#include "base/metrics_text.h"
#include "server/control/control_format.h"
#include "stack/live_stack.h"

namespace cairn::server {

// A stack's layers as one flat list, from the top down, each with its path.
Json layers_json(const drive::LayerInfo& top);

// The layers of a stack that is not open, in the same order, each with what it is.
Json plan_json(const drive::Stack& stack);
// The same as a tree.
std::string plan_text(const drive::Stack& stack);

// The drives of an answer to drive.show as trees, with their figures.
std::string show_text(const Json& answer);
// The layers of the drives of such an answer.
void add_layers(MetricsText& text, const Json& answer);
// The same in the text format that Prometheus reads, with how well the drives are.
std::string metrics_text(const Json& answer);

}  // namespace cairn::server
