#include "storage/disk/disk_store.hpp"

#include "model/assert.hpp"
#include "storage/disk/directory.hpp"
#include "storage/disk/gated_file_system.hpp"
#include "storage/disk/thread_env.hpp"
#include "storage/stored_journal.hpp"

#include <array>
#include <thread>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace troupe::storage {
namespace {

constexpr std::size_t mib = 1 << 20;
constexpr std::chrono::milliseconds stall_pause{1};
constexpr std::chrono::milliseconds look_pause{5}; ///< between two checks of the free space
const std::array<std::string, family_count> family_names{"default", "rows", "series", "logs"};

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view text(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

error from(const rocksdb::Status& status, const std::string& place) {
  auto code = status.IsCorruption() ? errc::corrupt : status.IsNoSpace() ? errc::no_space : errc::io;
  return {code, place + ": " + status.ToString()};
}

/// RocksDB's own log would be one more file to write and keep; a status tells what matters.
class silent_logger : public rocksdb::Logger {
public:
  silent_logger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// The sizes keep the whole process small, and let a start replay little.
rocksdb::DBOptions database_options(const space_limits& limits) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.info_log = std::make_shared<silent_logger>();
  options.max_background_jobs = 2;
  options.max_open_files = 128;
  options.max_file_opening_threads = 1;
  options.db_write_buffer_size = 2 * limits.write_buffer;
  options.max_total_wal_size = limits.log_total;
  options.max_manifest_file_size = mib;
  options.manifest_preallocation_size = 0;
  options.keep_log_file_num = 1;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  options.skip_checking_sst_file_sizes_on_db_open = true;
  options.avoid_flush_during_recovery = true;
  options.avoid_flush_during_shutdown = true;
  options.allow_concurrent_memtable_write = false; // there is one writer
  options.enable_write_thread_adaptive_yield = false;
  // What follows the last synced record is a torn tail, which was never acknowledged.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.paranoid_checks = true;
  return options;
}

/// The part of a key that neighbouring keys share: all but the number at the end, whose first byte is zero
/// because no number grows that large. Most new keys go right behind their newest neighbour, and this lets
/// RocksDB remember that place. Names that end in text, such as a checkpoint's, have no neighbours.
class neighbours : public rocksdb::SliceTransform {
public:
  const char* Name() const override { return "troupe.neighbours"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override { return {key.data(), key.size() - 8}; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return key.size() > 8 && key[key.size() - 8] == 0;
  }
};

rocksdb::ColumnFamilyOptions family_options(family which, const space_limits& limits,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  if (which == family::logs) // lines are read by the thousand
    table.block_size = 32 << 10;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = limits.write_buffer;
  options.arena_block_size = 64 << 10;
  options.memtable_insert_with_hint_prefix_extractor = std::make_shared<neighbours>();
  options.max_write_buffer_number = 3;
  options.target_file_size_base = 4 * limits.write_buffer;
  options.max_bytes_for_level_base = 16 * limits.write_buffer;
  options.compression = rocksdb::kLZ4Compression;
  if (which == family::rows) { // most lookups of new checkpoints find nothing
    options.memtable_whole_key_filtering = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
  }
  return options;
}

struct open_database {
  ~open_database();
  std::unique_ptr<owned_directory> directory;
  std::unique_ptr<space_gate> gate;
  std::shared_ptr<gated_file_system> files;
  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, family_count> families{};

  rocksdb::ColumnFamilyHandle* of(family where) const { return families[static_cast<std::size_t>(where)]; }
};

open_database::~open_database() {
  if (!db)
    return;
  gate->close(); // a writer that waits for space would keep the database from closing
  for (auto* family : families)
    db->DestroyColumnFamilyHandle(family);
  db->Close();
}

class disk_cursor : public cursor {
public:
  disk_cursor(const open_database& of, family where, const rocksdb::Snapshot* at, std::string_view from,
              std::string_view until, direction towards)
      : from_(from), until_(until), lower_(slice(from_)), upper_(slice(until_)),
        forward_(towards == direction::forward) {
    rocksdb::ReadOptions options;
    options.snapshot = at;
    options.iterate_lower_bound = &lower_;
    options.iterate_upper_bound = &upper_;
    options.total_order_seek = true;
    at_.reset(of.db->NewIterator(options, of.of(where)));
    if (!(from_ < until_))
      return;
    forward_ ? at_->Seek(lower_) : at_->SeekForPrev(upper_);
    if (!forward_ && at_->Valid() && at_->key() == upper_)
      at_->Prev();
  }
  bool valid() const override { return at_->Valid(); }
  std::string_view key() const override { return text(at_->key()); }
  std::string_view data() const override { return text(at_->value()); }
  void next() override { forward_ ? at_->Next() : at_->Prev(); }
  result<void> status() const override {
    auto status = at_->status();
    return status.ok() ? result<void>{} : from(status, "walk");
  }

private:
  static error from(const rocksdb::Status& s, const char* place) { return storage::from(s, place); }
  std::string from_, until_;
  rocksdb::Slice lower_, upper_;
  bool forward_;
  std::unique_ptr<rocksdb::Iterator> at_;
};

result<std::optional<std::string>> get_at(const open_database& of, family where, std::string_view key,
                                          const rocksdb::Snapshot* at) {
  rocksdb::ReadOptions options;
  options.snapshot = at;
  std::string bytes;
  auto status = of.db->Get(options, of.of(where), slice(key), &bytes);
  if (status.IsNotFound())
    return std::optional<std::string>{};
  if (!status.ok())
    return from(status, of.directory->path().string());
  return std::optional{std::move(bytes)};
}

class disk_view : public view {
public:
  explicit disk_view(std::shared_ptr<const open_database> of)
      : of_(std::move(of)), at_(of_->db->GetSnapshot()) {}
  ~disk_view() override { of_->db->ReleaseSnapshot(at_); }
  result<std::optional<std::string>> get(family where, std::string_view key) const override {
    return get_at(*of_, where, key, at_);
  }
  std::unique_ptr<cursor> scan(family where, std::string_view from, std::string_view until,
                               direction towards) const override {
    return std::make_unique<disk_cursor>(*of_, where, at_, from, until, towards);
  }

private:
  std::shared_ptr<const open_database> of_;
  const rocksdb::Snapshot* at_;
};

class disk_batch : public batch {
public:
  explicit disk_batch(std::shared_ptr<const open_database> of) : of_(std::move(of)) {}
  // Only a batch above 4 GiB can fail here, and the lanes keep far below that.
  void put(family where, std::string_view key, std::string_view data) override {
    changes.Put(of_->of(where), slice(key), slice(data)).PermitUncheckedError();
  }
  void erase(family where, std::string_view key) override {
    changes.Delete(of_->of(where), slice(key)).PermitUncheckedError();
  }
  void erase_range(family where, std::string_view from, std::string_view until) override {
    // RocksDB 7.8 remembers one place for entries and erased ranges, though they lie in different lists.
    TROUPE_ASSERT(!neighbours{}.InDomain(slice(from)));
    changes.DeleteRange(of_->of(where), slice(from), slice(until)).PermitUncheckedError();
  }
  void clear() override { changes.Clear(); }
  std::size_t bytes() const override { return changes.GetDataSize(); }

  rocksdb::WriteBatch changes;

private:
  std::shared_ptr<const open_database> of_;
};

class disk_store : public store {
public:
  explicit disk_store(std::shared_ptr<open_database> of) : of_(std::move(of)) {}

  std::unique_ptr<view> look() const override { return std::make_unique<disk_view>(of_); }
  result<std::optional<std::string>> get(family where, std::string_view key) const override {
    return get_at(*of_, where, key, nullptr);
  }
  std::unique_ptr<batch> make_batch() const override { return std::make_unique<disk_batch>(of_); }

  result<void> admit(std::size_t bytes) override {
    const auto time = std::chrono::steady_clock::now();
    const auto fresh = bytes >= admitted_ && bytes <= admitted_ + of_->gate->limits().chunk / 4;
    if (fresh && time < looked_ + look_pause)
      return {};
    const auto now = of_->gate->look();
    if (!may_write(of_->gate->limits(), writer::journal, now.free, bytes))
      return no_room(now);
    admitted_ = bytes;
    looked_ = time;
    keep_ballast(now);
    return {};
  }

  result<void> write(batch& changes, bool sync) override {
    auto& all = static_cast<disk_batch&>(changes);
    // Record headers of the log add at most 1 %; the rest is slack for a block's padding.
    const auto bytes = all.bytes() + all.bytes() / 64 + 64 * 1024;
    if (!of_->files->prepare_log(bytes))
      return no_room(of_->gate->look());
    rocksdb::WriteOptions options;
    options.sync = sync;
    options.no_slowdown = true; // a flush that waits for space must not hold the writer as well
    auto status = of_->db->Write(options, &all.changes);
    for (; status.IsIncomplete(); status = of_->db->Write(options, &all.changes)) {
      if (of_->gate->parked())
        return no_room(of_->gate->look());
      std::this_thread::sleep_for(stall_pause); // RocksDB does not tell when a stall is over
    }
    if (status.ok())
      return {};
    auto why = from(status, of_->directory->path().string());
    return error{errc::io, why.what};
  }

  result<void> put_blob(std::string_view name, std::string_view bytes) override {
    return of_->directory->put_blob(name, bytes);
  }
  result<std::string> blob(std::string_view name) const override { return of_->directory->blob(name); }

private:
  error no_room(const free_space& now) const {
    return {errc::no_space, of_->directory->path().string() + ": only " + std::to_string(now.free / 1024) +
                              " KiB of its file system are free, and " +
                              std::to_string(of_->gate->limits().reserve / 1024) +
                              " KiB are kept in reserve; free some space, and writing goes on"};
  }
  /// Makes the ballast again once there is plenty of room; checks that only now and then.
  void keep_ballast(const free_space& now) {
    if (has_ballast_ || now.free < 2 * of_->gate->limits().reserve + of_->gate->limits().ballast)
      return;
    of_->directory->make_ballast(of_->gate->limits().ballast);
    has_ballast_ = true;
  }

  std::shared_ptr<open_database> of_;
  std::size_t admitted_ = 0; ///< bytes that the last check of the disk admitted
  std::chrono::steady_clock::time_point looked_;
  bool has_ballast_ = of_->directory->has_ballast(of_->gate->limits().ballast);
};

/// The most that opening may have to write: logs that do not fit into memory become tables, and each name
/// takes a block.
std::uint64_t bytes_to_open(const std::filesystem::path& database, const space_limits& limits) {
  std::uint64_t logs = 0;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(database, fault))
    if (entry.path().extension() == ".log")
      logs += std::filesystem::file_size(entry.path(), fault);
  return (logs > limits.write_buffer ? logs : 0) + 2 * limits.chunk + 128 * 1024;
}

} // namespace

result<std::shared_ptr<store>> open_disk_store(const journal_options& options, background threads) {
  auto directory = owned_directory::open(options.directory);
  if (!directory)
    return directory.error();
  auto all = std::make_shared<open_database>();
  all->directory = std::move(*directory);
  const auto place = all->directory->path();
  const auto limits = limits_for(space_of(place).total, options.reserve_bytes);
  const auto needed = bytes_to_open(all->directory->database(), limits);
  if (space_of(place).free < needed)
    all->directory->drop_ballast();
  if (auto now = space_of(place); now.free < needed)
    return error{errc::no_space, place.string() + ": opening needs " + std::to_string(needed / 1024) +
                                   " KiB, and its file system has only " + std::to_string(now.free / 1024) +
                                   " KiB free; free some space and start again"};

  all->gate = std::make_unique<space_gate>(
    limits, [place] { return space_of(place); }, options.notice);
  all->files = std::make_shared<gated_file_system>(rocksdb::FileSystem::Default(), *all->gate,
                                                   (place / "next-log").string());
  all->env = rocksdb::NewCompositeEnv(all->files);
  if (threads == background::own)
    all->env = std::make_unique<thread_env>(std::move(all->env), all->files);
  auto settings = database_options(limits);
  settings.env = all->env.get();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  const auto cache = rocksdb::NewLRUCache(4 * mib, 0);
  for (std::size_t i = 0; i < family_names.size(); ++i)
    descriptors.emplace_back(family_names[i], family_options(static_cast<family>(i), limits, cache));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  all->gate->relax(true);
  auto status = rocksdb::DB::Open(settings, all->directory->database().string(), descriptors, &handles, &db);
  all->gate->relax(false);
  all->directory->make_ballast(limits.ballast); // before new writes can take the free space
  if (!status.ok()) {
    auto why = from(status, place.string());
    if (status.IsInvalidArgument()) // a column family that this build does not know
      why.code = errc::unsupported, why.what += "; a newer troupe wrote it: run that version";
    return why;
  }
  all->db.reset(db);
  std::copy(handles.begin(), handles.end(), all->families.begin());
  return std::shared_ptr<store>(std::make_shared<disk_store>(std::move(all)));
}

result<std::unique_ptr<journal>> open_journal(const journal_options& options) {
  return open_journal(options, background::own);
}

result<std::unique_ptr<journal>> open_journal(const journal_options& options, background threads) {
  auto store = open_disk_store(options, threads);
  if (!store)
    return store.error();
  return make_journal(std::move(*store), options);
}

} // namespace troupe::storage
