// SPDX-License-Identifier: Apache-2.0
// when_all: wait for several tasks that already run side by side.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "task/task.h"

namespace cairn::task {

namespace detail {
template <class T>
using NotVoid = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
NotVoid<T> take_value(Task<T>& task) {
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return task.take();
  }
}
}  // namespace detail

// All results, in the order of the arguments; std::monostate for void. Waits for every task even
// when one has failed: a task is never dropped. `auto [a, b] = co_await when_all(f(), g());`
template <class... T>
Task<std::tuple<detail::NotVoid<T>...>> when_all(Task<T>... tasks) {
  (co_await tasks.settled(), ...);
  co_return std::tuple<detail::NotVoid<T>...>(detail::take_value(tasks)...);
}

// The same for any number of tasks of one type; results in the same order.
template <class T>
  requires(!std::is_void_v<T>)
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<T> values;
  values.reserve(tasks.size());
  for (Task<T>& task : tasks) {
    co_await task.settled();
    values.push_back(task.take());
  }
  co_return values;
}
inline Task<void> when_all(std::vector<Task<void>> tasks) {
  for (Task<void>& task : tasks) co_await task;
}

}  // namespace cairn::task
