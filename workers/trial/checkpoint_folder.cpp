#include "workers/trial/checkpoint_folder.hpp"
#include "system/random.hpp"

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <unistd.h>

namespace troupe::trial {
namespace {

namespace fs = std::filesystem;

constexpr const char* position_file = "troupe-trial.json";

error failed(const std::string& what, const std::error_code& why) {
  return {errc::io, what + ": " + why.message()};
}

bool sync(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool ok = file >= 0 && fsync(file) == 0;
  if (file >= 0)
    close(file);
  return ok;
}

// Syncs every file and folder below `folder`, and lists the files. Does not follow links.
result<file_list> make_durable(const fs::path& folder) {
  file_list files;
  std::error_code fault;
  std::vector<fs::path> folders{folder};
  for (const auto& entry : fs::recursive_directory_iterator(folder, fault)) {
    if (entry.is_symlink(fault))
      continue;
    if (entry.is_directory(fault)) {
      folders.push_back(entry.path());
    } else if (entry.is_regular_file(fault)) {
      if (!sync(entry.path()))
        return failed("cannot sync " + entry.path().string(), {errno, std::generic_category()});
      files[entry.path().lexically_relative(folder).string()] = entry.file_size(fault);
    }
  }
  for (const auto& one : folders)
    if (!sync(one))
      return failed("cannot sync " + one.string(), {errno, std::generic_category()});
  return files;
}

// The sums are written as bits, because they have to come back exactly, NaN included.
result<void> write_position(const fs::path& folder, const trial_position& at) {
  auto sums = nlohmann::json::array();
  for (const auto& [name, sum] : at.sums)
    sums.push_back({name, std::bit_cast<std::uint64_t>(sum)});
  std::ofstream out(folder / position_file, std::ios::trunc);
  out << nlohmann::json{{"version", 1},
                        {"steps", at.steps},
                        {"batches_in_means", at.batches_in_means},
                        {"sums", sums}}
           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
      << "\n";
  if (!out.flush())
    return error{errc::io, "cannot write " + (folder / position_file).string()};
  return {};
}

} // namespace

result<written_checkpoint> write_checkpoint(const fs::path& root, const trial_position& at,
                                            const std::function<result<void>(const fs::path&)>& save) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  char time[13]; // version 7 (RFC 9562): names grow with time, which suits the master's index
  std::snprintf(time, sizeof time, "%012llx",
                static_cast<unsigned long long>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count()) &
                  0xffffffffffff);
  std::string uuid = time + random_hex(10);
  uuid[12] = '7';
  uuid[16] = "89ab"[uuid[16] % 4];
  for (const std::size_t dash : {8, 13, 18, 23})
    uuid.insert(dash, "-");
  const fs::path draft = root / (uuid + ".tmp");
  std::error_code fault;
  fs::create_directories(draft, fault);
  if (fault)
    return failed("cannot make " + draft.string(), fault);
  const auto give_up = [&](error why) {
    fs::remove_all(draft, fault);
    return why;
  };
  if (auto ok = save(draft); !ok)
    return give_up(ok.error());
  if (fs::exists(draft / position_file, fault))
    return give_up(
      {errc::invalid, std::string("save() wrote ") + position_file + ", which is Troupe's own file"});
  if (auto ok = write_position(draft, at); !ok)
    return give_up(ok.error());
  auto files = make_durable(draft);
  if (!files)
    return give_up(files.error());
  fs::rename(draft, root / uuid, fault);
  if (fault)
    return give_up(failed("cannot rename " + draft.string(), fault));
  if (!sync(root))
    return failed("cannot sync " + root.string(), {errno, std::generic_category()});
  return written_checkpoint{uuid, std::move(*files)};
}

result<trial_position> read_position(const fs::path& checkpoint) {
  std::ifstream in(checkpoint / position_file);
  const auto x = nlohmann::json::parse(in, nullptr, false);
  if (!x.is_object() || !x.contains("steps") || !x["steps"].is_number_integer())
    return error{errc::corrupt, (checkpoint / position_file).string() +
                                  " is missing or damaged: the checkpoint was not written by a trial in C++"};
  trial_position at;
  at.steps = x["steps"].get<std::int64_t>();
  at.batches_in_means = x.value("batches_in_means", std::int64_t{0});
  for (const auto& sum : x.value("sums", nlohmann::json::array()))
    if (sum.is_array() && sum.size() == 2 && sum[0].is_string() && sum[1].is_number_unsigned())
      at.sums.emplace_back(sum[0].get<std::string>(), std::bit_cast<double>(sum[1].get<std::uint64_t>()));
  return at;
}

} // namespace troupe::trial
