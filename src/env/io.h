// SPDX-License-Identifier: Apache-2.0
// The few things everybody builds on streams.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::env {

// Fills all of `into`. kClosed: the peer finished first (detail() = bytes that did arrive, at most
// INT32_MAX). Other errors as Stream::read.
task::Task<Result<void>> read_exactly(Stream& stream, MutableBytes into,
                                      task::CancelToken token = {});

// Connects and opens the stream on this core.
task::Task<Result<std::unique_ptr<Stream>>> connect_stream(Env& env, Address to,
                                                           StreamOptions options = {},
                                                           task::CancelToken token = {});

}  // namespace cairn::env
