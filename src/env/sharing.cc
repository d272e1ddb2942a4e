// SPDX-License-Identifier: Apache-2.0
#include "env/sharing.h"

#include "env/env.h"

namespace cairn::env {

void SignalOp::start() { signal_.start_wait(*this); }
void SignalOp::cancel() { signal_.cancel_wait(*this); }
void LocalReadOp::start() { stream_.start_read(*this); }
void LocalReadOp::cancel() { stream_.cancel_read(*this); }
void LocalWriteOp::start() { stream_.start_write(*this); }
void LocalWriteOp::cancel() { stream_.cancel_write(*this); }

// Not a call of Env: the worlds that have it implement it beside Env, and nobody else knows of it.
Sharing* sharing(Env& env) { return dynamic_cast<Sharing*>(&env); }

}  // namespace cairn::env
