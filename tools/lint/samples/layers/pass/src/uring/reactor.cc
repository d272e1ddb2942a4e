// SPDX-License-Identifier: Apache-2.0
#include "env/env.h"
#include "posix/socket.h"
#include "task/task.h"
#include "uring/reactor.h"
