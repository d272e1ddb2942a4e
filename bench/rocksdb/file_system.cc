// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/file_system.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cairn::bench {

namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus status_of(const Result<void>& result, const std::string& name = "") {
  if (result) return IOStatus::OK();
  const std::string text = result.error().text();
  if (result.error() == Errc::kNotFound) return IOStatus::NotFound(name, text);
  if (result.error() == Errc::kNoSpace) return IOStatus::NoSpace(name, text);
  return IOStatus::IOError(name, text);
}

// As RocksDB writes names: "/db//CURRENT", "/db/".
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  }
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(std::shared_ptr<FlatFile> file) : file_(std::move(file)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    ReadPart part{at_, {reinterpret_cast<std::byte*>(scratch), n}};
    const Result<void> done = file_->read({&part, 1});
    *result = Slice(scratch, part.got);
    at_ += part.got;
    return status_of(done);
  }
  IOStatus Skip(uint64_t n) override {
    at_ = std::min(at_ + n, file_->size());
    return IOStatus::OK();
  }

 private:
  std::shared_ptr<FlatFile> file_;
  uint64_t at_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::shared_ptr<FlatFile> file) : file_(std::move(file)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    ReadPart part{offset, {reinterpret_cast<std::byte*>(scratch), n}};
    const Result<void> done = file_->read({&part, 1});
    *result = Slice(scratch, part.got);
    return status_of(done);
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions&,
                     IODebugContext*) override {
    std::vector<ReadPart> parts;
    for (size_t i = 0; i < count; ++i) {
      parts.push_back({requests[i].offset,
                       {reinterpret_cast<std::byte*>(requests[i].scratch), requests[i].len}});
    }
    const IOStatus status = status_of(file_->read(parts));
    for (size_t i = 0; i < count; ++i) {
      requests[i].result = Slice(requests[i].scratch, parts[i].got);
      requests[i].status = status;
    }
    return IOStatus::OK();
  }

 private:
  std::shared_ptr<FlatFile> file_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  explicit WritableFile(std::shared_ptr<FlatFile> file) : file_(std::move(file)) {}
  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return status_of(file_->append(std::as_bytes(std::span(data.data(), data.size()))));
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return status_of(file_->truncate(size));
  }
  // Whoever reads sees what was appended without it.
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return status_of(file_->sync()); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return status_of(file_->sync()); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return file_->size(); }

 private:
  std::shared_ptr<FlatFile> file_;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class NoLock final : public rocksdb::FileLock {};

class FlatFileSystem final : public rocksdb::FileSystem {
 public:
  explicit FlatFileSystem(FlatFiles& files) : files_(files) {}
  const char* Name() const override { return "CairnFlatFiles"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    return open<SequentialFile>(name, *result);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    return open<RandomAccessFile>(name, *result);
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    *result = std::make_unique<WritableFile>(files_.create(plain(name)));
    return IOStatus::OK();
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* context) override {
    if (!files_.exists(plain(name))) return NewWritableFile(name, options, result, context);
    return open<WritableFile>(name, *result);
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    *result = std::make_unique<Directory>();
    return IOStatus::OK();
  }

  // A folder exists as soon as anybody names it: only its files are kept.
  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    return files_.exists(plain(name)) ? IOStatus::OK() : IOStatus::NotFound(name);
  }
  IOStatus GetChildren(const std::string& folder, const IOOptions&, std::vector<std::string>* names,
                       IODebugContext*) override {
    *names = files_.list(plain(folder));
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    return status_of(files_.remove(plain(name)), name);
  }
  IOStatus CreateDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus CreateDirIfMissing(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus DeleteDir(const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& name, const IOOptions&, bool* is_folder,
                       IODebugContext*) override {
    *is_folder = !files_.list(plain(name)).empty();
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, uint64_t* size,
                       IODebugContext*) override {
    const Result<std::shared_ptr<FlatFile>> file = files_.open(plain(name));
    if (!file) return status_of(fail(file.error()), name);
    *size = (*file)->size();
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* seconds,
                                   IODebugContext*) override {
    *seconds = 0;  // nothing here depends on it
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    return status_of(files_.rename(plain(from), plain(to)), from);
  }
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    *lock = new NoLock;
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& name, const IOOptions&, std::string* path,
                           IODebugContext*) override {
    *path = name.starts_with('/') ? name : "/" + name;
    return IOStatus::OK();
  }

 private:
  template <class File, class Pointer>
  IOStatus open(const std::string& name, Pointer& result) {
    Result<std::shared_ptr<FlatFile>> file = files_.open(plain(name));
    if (!file) return status_of(fail(file.error()), name);
    result = std::make_unique<File>(std::move(*file));
    return IOStatus::OK();
  }

  FlatFiles& files_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_file_system(FlatFiles& files) {
  return std::make_shared<FlatFileSystem>(files);
}

}  // namespace cairn::bench
