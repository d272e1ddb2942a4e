// SPDX-License-Identifier: Apache-2.0
// What most sources include, parsed once for all of them (cmake/CairnPrecompiled.cmake): the
// standard library, fmt, and the world as two thirds of our sources see it. Who edits one of those
// headers compiles everything. A source still includes what it uses: builds for arm64 and
// lint.headers do without this.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "env/env.h"
