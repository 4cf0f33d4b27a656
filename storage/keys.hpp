#pragma once
// How things are named in the store. Numbers are big-endian, so that the order of bytes is the order of
// numbers.
//
//   facts   's'                             schema version
//           'p'                             version of the projections; absent while they are being rebuilt
//           'f' entity 0 number             facts of one commit, from this number on (fact_rows.hpp)
//           'n' entity                      its newest snapshot
//           'g' sequence of its last fact   one commit: which facts, in order
//           'm' task run rank process       high-water mark of one library instance's reports
//           'l' source                      position up to which a log was stored
//           'r' trial                       its newest run that reported steps, and the most of these
//   rows    'C' experiment                  the constant part of an experiment      'E' the changing part
//           'K' key of the submitter        experiment id
//           'H' trial                       the constant part of a trial            'T' the changing part
//           'G' trial report                its best and latest validations before that one
//           'A' task                        what every task has
//           'B' task                        the constant part, unless a trial        'Y' the changing part
//           'X' experiment trial            which trials an experiment has
//           'N' project                     the newest number of a trial in it
//           'I' project number              the trial that got the number, wherever it is now
//           'F' key of a project            the project that had it last
//           'P' uuid                        where its fact stands
//           'W' workspace                   its newest fact, as for all down to 'S'
//           'J' project   'Q' template   'M' model   'V' version of a model
//           'D' experiment                  its newest description
//           'U' user   'R' number of a session's token   'O' (the configuration)   'S' key of a setting
//           'Z' tag 0 name                  the newest fact of a name, encoded (projections/records.cpp)
//   series  trial row                       one report
//   logs    task number                     lines up to this one (log_rows.hpp)
//
// A task is the 8 bytes of a trial's number, or the 16 bytes of another task's UUID, which begin above every
// number of a trial (model/ids.hpp).

#include "model/ids.hpp"

#include <string>
#include <string_view>

namespace troupe::storage::keys {

inline void add_number(std::string& key, std::uint64_t number) {
  char bytes[8];
  for (int i = 7; i >= 0; --i, number >>= 8)
    bytes[i] = static_cast<char>(number & 0xff);
  key.append(bytes, sizeof bytes);
}

inline void add_task(std::string& key, task_id task) {
  if (task.high() != 0)
    add_number(key, task.high());
  add_number(key, task.low());
}

/// The big-endian number in the last 8 bytes of `key`, which must have them.
inline std::uint64_t last_number(std::string_view key) {
  std::uint64_t number = 0;
  for (unsigned char byte : key.substr(key.size() - 8))
    number = number << 8 | byte;
  return number;
}

inline std::string one(std::uint64_t number) {
  std::string key;
  add_number(key, number);
  return key;
}
inline std::string two(std::uint64_t major, std::uint64_t minor) {
  std::string key;
  key.reserve(16);
  add_number(key, major);
  add_number(key, minor);
  return key;
}
inline std::string tagged(char tag, std::uint64_t number) {
  std::string key(1, tag);
  add_number(key, number);
  return key;
}
inline std::string tagged(char tag, std::uint64_t major, std::uint64_t minor) {
  std::string key(1, tag);
  add_number(key, major);
  add_number(key, minor);
  return key;
}
inline std::string task(task_id id) {
  std::string key;
  add_task(key, id);
  return key;
}
inline std::string task_row(task_id id) { return "A" + task(id); }
/// The end of all keys that begin with those bytes of a task.
inline std::string after_task(task_id id) { // the last byte of a UUID may be the greatest one
  return id.high() == 0 ? one(id.low() + 1) : task(id) + std::string(9, '\xff');
}
inline std::string of_task(task_id id, std::uint64_t number) {
  auto key = task(id);
  add_number(key, number);
  return key;
}
inline std::string tagged(char tag, std::string_view name) {
  std::string key(1, tag);
  key += name;
  return key;
}

/// The end of all keys that begin with the byte `tag`.
inline std::string after(char tag) { return std::string(1, static_cast<char>(tag + 1)); }

/// The key of a record fact: its tag, then its name.
inline std::string record(std::string_view tag, std::string_view name) {
  std::string key(tag);
  key += '\0';
  key += name;
  return key;
}

inline constexpr std::string_view schema = "s";
inline constexpr std::string_view projections = "p";

inline std::string stream(std::string_view entity) {
  auto key = tagged('f', entity);
  key += '\0';
  return key;
}
inline std::string fact(std::string_view entity, std::uint64_t number) {
  auto key = stream(entity);
  add_number(key, number);
  return key;
}
/// The end of a stream: no number reaches it, and it is before every longer name.
inline std::string after_stream(std::string_view entity) {
  auto key = tagged('f', entity);
  key += '\1';
  return key;
}

inline std::string mark(allocation_id of, std::int32_t rank, std::string_view process) {
  std::string key(1, 'm');
  add_task(key, of.task);
  add_number(key, of.run.value);
  add_number(key, static_cast<std::uint32_t>(rank));
  key += process;
  return key;
}

} // namespace troupe::storage::keys
