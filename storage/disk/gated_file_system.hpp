#pragma once
// RocksDB's file system behind the space gate: every block is claimed (fallocate) before it is written, so a
// write never meets a full disk; where there is no room, the writer waits at the gate.

#include "storage/disk/space_gate.hpp"

#include <string>

#include <rocksdb/file_system.h>

namespace troupe::storage {

class gated_file;
class gated_log; // the write-ahead log that is written now

class gated_file_system : public rocksdb::FileSystemWrapper {
public:
  /// `spare` names a file on the same file system, outside the database.
  gated_file_system(const std::shared_ptr<rocksdb::FileSystem>& target, space_gate& gate, std::string spare);
  ~gated_file_system() override;

  const char* Name() const override { return "TroupeGatedFileSystem"; }

  /// Claims blocks for `bytes` more in the present write-ahead log, and as many in a spare file that becomes
  /// the next log, so that a write waits for nothing even where it begins a new log. False where the disk
  /// lacks room for them.
  bool prepare_log(std::uint64_t bytes);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& name, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;

private:
  space_gate& gate_;
  const std::string spare_name_;
  std::shared_ptr<gated_log> log_;
  std::mutex guard_;
  std::unique_ptr<gated_file> spare_; ///< guarded
  rocksdb::FileOptions log_options_;  ///< guarded; the options that RocksDB opened the last log with
  bool log_seen_ = false;             ///< guarded
};

} // namespace troupe::storage
