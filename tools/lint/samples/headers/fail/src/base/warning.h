// SPDX-License-Identifier: Apache-2.0
#pragma once

inline int twice(int number) { return 2; }
