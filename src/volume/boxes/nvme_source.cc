// SPDX-License-Identifier: Apache-2.0
#include "volume/boxes/nvme_source.h"

#include <expected>
#include <utility>

#include "base/uuid.h"

namespace cairn::volume {

using fabric::HostOptions;
using fabric::RemoteDrive;
using task::CancelToken;
using task::Task;

Result<fabric::Uri> NvmeSource::find(const std::string& text, const BoxIdentity& host) const {
  std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
  if (!uri || uri->is_discovery()) {
    return fail(Errc::kInvalid,
                "a drive of a pool is nvme-tcp://ADDRESS/NQN with its nsid or uuid");
  }
  HostOptions& options = uri->options;
  const HostOptions usual;
  options.host_id = host.host_id;
  if (options.host_nqn.empty()) {
    options.host_nqn = "nqn.2014-08.org.nvmexpress:uuid:" + uuid_text(host.host_id);
  }
  if (options.loss_timeout == usual.loss_timeout) options.loss_timeout = options_.loss_timeout;
  if (options.keep_alive == usual.keep_alive) options.keep_alive = options_.keep_alive;
  if (options.reconnect_delay_max == usual.reconnect_delay_max) {
    options.reconnect_delay_max = options_.reconnect_delay_max;
  }
  if (options_.read_keys) {
    const Result<void> read = options_.read_keys(options);
    if (!read) return fail(read.error());
  }
  return std::move(*uri);
}

Task<Result<std::unique_ptr<RemoteDrive>>> NvmeSource::open_as(
    std::string text, BoxIdentity host, std::unique_ptr<fabric::Admission> admission,
    CancelToken token) {
  Result<fabric::Uri> uri = find(text, host);
  if (!uri) co_return fail(uri.error());
  Result<std::unique_ptr<RemoteDrive>> drive =
      co_await RemoteDrive::open(pool_, std::move(*uri), std::move(admission), token);
  if (drive) co_return drive;
  // A box that is just starting may not have its namespaces yet: nothing is lost by that.
  const Error why = drive.error();
  if (why == Errc::kNotFound || why == Errc::kInvalid) {
    co_return fail(Errc::kUnreachable, why.what(), why.detail());
  }
  co_return fail(why);
}

Task<Result<std::unique_ptr<drive::Drive>>> NvmeSource::open(std::string uri, std::string host,
                                                             CancelToken token) {
  const BoxIdentity self = box_identity(host);
  Result<std::unique_ptr<RemoteDrive>> drive = co_await open_as(
      std::move(uri), self, std::make_unique<Registration>(self, /*stays=*/false), token);
  if (!drive) co_return fail(drive.error());
  co_return std::move(*drive);
}

}  // namespace cairn::volume
