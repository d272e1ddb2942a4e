// SPDX-License-Identifier: Apache-2.0
// on_every_core: the same function on each core of a world at once, the results awaited here.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "env/call.h"
#include "task/when_all.h"

namespace cairn::nvme {

// Runs `function(Env& there)` on every core; gives a vector of the results by core, or nothing when
// it returns nothing. The messages leave in this call, so two calls take effect in their order. The
// function is shared by all cores at once: it may read what it refers to.
template <class F>
auto on_every_core(env::Env& here, F function) {
  using Returned = typename env::detail::TaskResult<std::invoke_result_t<F&, env::Env&>>::Type;
  using Results = std::conditional_t<std::is_void_v<Returned>, void, std::vector<Returned>>;
  return [](env::Env& from, F shared) -> task::Task<Results> {
    std::vector<task::Task<Returned>> calls;
    calls.reserve(from.core_count());
    for (uint32_t core = 0; core < from.core_count(); ++core) {
      calls.push_back(
          env::call_on(from, CoreId(core), [&shared](env::Env& there) { return shared(there); }));
    }
    if constexpr (std::is_void_v<Returned>) {
      co_await task::when_all(std::move(calls));
    } else {
      Results results = co_await task::when_all(std::move(calls));
      co_return results;
    }
  }(here, std::move(function));
}

}  // namespace cairn::nvme
