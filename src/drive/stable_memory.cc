// SPDX-License-Identifier: Apache-2.0
#include "drive/stable_memory.h"

#include "drive/scatter.h"
#include "drive/scratch.h"

namespace cairn::drive {

task::Task<Result<void>> run_on_copy(env::Env& env, Drive& drive, const DriveOp& op) {
  using Kind = Request::Kind;
  Request request = op.request;
  request.unstable_memory = false;
  const size_t size = total_size(op.data());
  const bool has_second = request.kind == Kind::kCompareAndWrite;
  Result<Scratch> copy = Scratch::make(env, has_second ? 2 * size : size);
  if (!copy) co_return fail(copy.error());
  const MutableBytes data = copy->first(size);
  const MutableBytes second = copy->bytes().subspan(size);
  if (request.kind != Kind::kRead) gather(op.data(), 0, data);
  if (has_second) gather(op.second(), 0, second);
  const Result<void> done = co_await drive.submit(
      request, {&data, 1}, {&second, has_second ? size_t{1} : size_t{0}}, op.token());
  if (done && request.kind == Kind::kRead) scatter(data, op.data(), 0);
  co_return done;
}

}  // namespace cairn::drive
