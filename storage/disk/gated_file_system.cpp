#include "storage/disk/gated_file_system.hpp"

namespace troupe::storage {

using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

/// Lets the writing thread find the newest log, which other threads may close meanwhile.
class gated_log {
public:
  void set(gated_file* file) {
    std::lock_guard lock(guard_);
    file_ = file;
  }
  void drop(gated_file* file) {
    std::lock_guard lock(guard_);
    if (file_ == file)
      file_ = nullptr;
  }
  bool prepare(std::uint64_t bytes);

private:
  std::mutex guard_;
  gated_file* file_ = nullptr;
};

namespace {

bool ends_with(const std::string& name, std::string_view tail) {
  return name.size() >= tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
}

constexpr std::uint64_t small_chunk = 64 * 1024;

writer writer_of(const std::string& name) {
  return ends_with(name, ".sst") || ends_with(name, ".blob") ? writer::tables
         : ends_with(name, ".log")                           ? writer::log
                                                             : writer::names;
}

IOStatus sent_away() { return IOStatus::IOError("the database is being closed"); }

/// Repeats an operation that needs a block for a name until the disk has that block.
template <class Operation>
IOStatus wait_for_space(space_gate& gate, writer who, Operation operation) {
  IOStatus status;
  bool passed = gate.pass(who, 0, [&] { return status = operation(), !status.IsNoSpace(); });
  return passed ? status : sent_away();
}

} // namespace

class gated_file : public rocksdb::FSWritableFileOwnerWrapper {
public:
  gated_file(std::unique_ptr<FSWritableFile>&& target, space_gate& gate, writer who, std::uint64_t size)
      : FSWritableFileOwnerWrapper(std::move(target)), gate_(gate), who_(who), size_(size), claimed_(size) {}
  ~gated_file() override {
    if (log_)
      log_->drop(this);
  }

  void become(std::shared_ptr<gated_log> log) {
    log_ = std::move(log);
    log_->set(this);
  }

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    if (!enter(data.size()))
      return sent_away();
    return leave(FSWritableFileOwnerWrapper::Append(data, options, debug), data.size());
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& check,
                  IODebugContext* debug) override {
    if (!enter(data.size()))
      return sent_away();
    return leave(FSWritableFileOwnerWrapper::Append(data, options, check, debug), data.size());
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    if (log_)
      log_->drop(this);
    if (claimed_ > size_ &&
        who_ != writer::log) // gives the rest of the last chunk back; a log is soon deleted whole
      FSWritableFileOwnerWrapper::Truncate(size_, options, debug).PermitUncheckedError();
    return FSWritableFileOwnerWrapper::Close(options, debug);
  }
  // RocksDB must not claim blocks itself: its pre-allocation would hide how much room there is.
  void PrepareWrite(std::size_t, std::size_t, const IOOptions&, IODebugContext*) override {}

  /// Claims blocks up to `bytes` beyond the end of the file; false where the disk has none left.
  bool claim(std::uint64_t bytes) {
    const auto until = size_ + bytes;
    if (until <= claimed_ || !claims_)
      return true;
    const auto chunk = who_ == writer::names ? small_chunk : gate_.limits().chunk;
    const auto want = (until + chunk - 1) / chunk * chunk;
    for (auto target : {want, until}) {
      auto status = Allocate(claimed_, target - claimed_, IOOptions(), nullptr);
      if (status.ok()) {
        claimed_ = target;
        return true;
      }
      if (!status.IsNoSpace()) {
        claims_ = false; // this file system cannot claim blocks; only the gate's levels protect it
        return true;
      }
    }
    return false;
  }

private:
  bool enter(std::size_t bytes) {
    if (claims_ && size_ + bytes <= claimed_) // these blocks are claimed already, however full the disk is
      return true;
    return gate_.pass(who_, bytes, [&] { return claim(bytes); });
  }
  IOStatus leave(IOStatus status, std::size_t bytes) {
    if (status.ok())
      size_ += bytes;
    return status;
  }

  space_gate& gate_;
  const writer who_;
  std::uint64_t size_, claimed_;
  bool claims_ = true;
  std::shared_ptr<gated_log> log_;
};

bool gated_log::prepare(std::uint64_t bytes) {
  std::lock_guard lock(guard_);
  return !file_ || file_->claim(bytes);
}

gated_file_system::gated_file_system(const std::shared_ptr<FileSystem>& target, space_gate& gate,
                                     std::string spare)
    : FileSystemWrapper(target), gate_(gate), spare_name_(std::move(spare)),
      log_(std::make_shared<gated_log>()) {}
gated_file_system::~gated_file_system() {
  if (spare_)
    target()->DeleteFile(spare_name_, IOOptions(), nullptr).PermitUncheckedError();
}

bool gated_file_system::prepare_log(std::uint64_t bytes) {
  if (!log_->prepare(bytes))
    return false;
  std::lock_guard lock(guard_);
  if (!log_seen_)
    return true;
  if (!spare_) {
    std::unique_ptr<FSWritableFile> plain;
    if (!target()->NewWritableFile(spare_name_, log_options_, &plain, nullptr).ok())
      return false;
    spare_ = std::make_unique<gated_file>(std::move(plain), gate_, writer::log, 0);
  }
  return spare_->claim(bytes);
}

IOStatus gated_file_system::NewWritableFile(const std::string& name, const FileOptions& options,
                                            std::unique_ptr<FSWritableFile>* file, IODebugContext* debug) {
  const bool log = ends_with(name, ".log");
  const auto who = writer_of(name);
  std::unique_ptr<gated_file> made;
  if (log) {
    std::lock_guard lock(guard_);
    log_options_ = options;
    log_seen_ = true;
    if (spare_ && target()->RenameFile(spare_name_, name, IOOptions(), debug).ok())
      made = std::move(spare_);
    spare_.reset();
  }
  if (!made) {
    std::unique_ptr<FSWritableFile> plain;
    auto status =
      wait_for_space(gate_, who, [&] { return target()->NewWritableFile(name, options, &plain, debug); });
    if (!status.ok())
      return status;
    made = std::make_unique<gated_file>(std::move(plain), gate_, who, 0);
  }
  if (log)
    made->become(log_);
  *file = std::move(made);
  return IOStatus::OK();
}

IOStatus gated_file_system::ReopenWritableFile(const std::string& name, const FileOptions& options,
                                               std::unique_ptr<FSWritableFile>* file, IODebugContext* debug) {
  const auto who = writer_of(name);
  std::unique_ptr<FSWritableFile> plain;
  auto status =
    wait_for_space(gate_, who, [&] { return target()->ReopenWritableFile(name, options, &plain, debug); });
  if (!status.ok())
    return status;
  const auto size = plain->GetFileSize(IOOptions(), debug);
  *file = std::make_unique<gated_file>(std::move(plain), gate_, who, size);
  return status;
}

IOStatus gated_file_system::ReuseWritableFile(const std::string&, const std::string&, const FileOptions&,
                                              std::unique_ptr<FSWritableFile>*, IODebugContext*) {
  return IOStatus::NotSupported("logs are not reused: a recovered tail must not meet old records");
}

IOStatus gated_file_system::RenameFile(const std::string& from, const std::string& to,
                                       const IOOptions& options, IODebugContext* debug) {
  return wait_for_space(gate_, writer::names, [&] { return target()->RenameFile(from, to, options, debug); });
}

IOStatus gated_file_system::CreateDirIfMissing(const std::string& name, const IOOptions& options,
                                               IODebugContext* debug) {
  return wait_for_space(gate_, writer::names,
                        [&] { return target()->CreateDirIfMissing(name, options, debug); });
}

} // namespace troupe::storage
