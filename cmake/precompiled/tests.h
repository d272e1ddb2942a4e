// SPDX-License-Identifier: Apache-2.0
// The same for tests, which include gtest as well.
#pragma once

#include "code.h"

#include <gtest/gtest.h>
