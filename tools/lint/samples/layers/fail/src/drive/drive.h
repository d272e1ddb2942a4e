// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "block.h"
#include "meta/store.h"
#include "uring/world.h"
#include <env/env.h>
