// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "block.h"
#include "meta/store.h"
#include "world/posix/world.h"
#include "tests/suite.h"
#include <env/env.h>
