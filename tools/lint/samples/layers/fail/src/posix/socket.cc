// SPDX-License-Identifier: Apache-2.0
#include "uring/reactor.h"
