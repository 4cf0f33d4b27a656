#include "runtime/cli/config_commands/config_commands.hpp"

#include "model/config/experiment_config.hpp"
#include "runtime/cli/exit_codes.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

namespace troupe::cli {
namespace {

using config::diagnostic;
using config::level;
using config::outcome;

constexpr int ok = exit_done, faulty = exit_usage;
constexpr std::size_t most_bytes = 8 << 20; ///< limit of a file; the reader has lower limits of its own

constexpr auto usage = R"(Reads, checks and explains experiment configurations. Nothing is sent to a cluster.

  troupe config check FILE...          reports every fault with its place and what to write instead; warns of keys without effect
  troupe config complete FILE          prints the configuration with all defaults, as JSON
  troupe config merge HIGH LOW         prints HIGH with the keys that LOW adds, as JSON
  troupe config explain [KEY]          explains a key: type, default, range, meaning
  troupe config schema [NAME]          prints a JSON Schema for editors

check, complete:
  --level sane|complete    sane: keys that a template, a pool or a cluster gives may be absent (default: complete)
  --config KEY=VALUE       replaces a value of the file; may be given several times
  --template FILE          layer below the file
  --task-container-defaults FILE  layer below the template, as a pool of the cluster has it
  --checkpoint-storage FILE       lowest layer, as a workspace or the cluster has it
check, complete, merge:
  --schema NAME            checks one value of the schema NAME (searcher, bind-mount, ...) instead of an experiment;
                           prints {"ok", "errors": [{"path", "message", "line", "column"}], "value"}
check, explain, schema:
  -o FORMAT                check: text (default) or json; schema: json (default) or markdown

A FILE named - means standard input. Exit code: 0, or 2 if there is a fault.

Examples:
  troupe config check experiment.yaml
  troupe config complete experiment.yaml --config searcher.max_trials=4
)";

struct source {
  std::string file, text;
};

/// What the command line asks for; `wrong` is set where it cannot be understood.
struct request {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::optional<std::string> schema, template_file, defaults_file, storage_file;
  std::string format;
  level want = level::complete;
  bool help = false;
  std::string wrong;
};

request parse(const std::vector<std::string>& args) {
  request r;
  bool only_files = false;
  for (std::size_t i = 1; i < args.size() && r.wrong.empty(); ++i) {
    auto arg = args[i];
    if (only_files || arg == "-" || !arg.starts_with('-')) {
      r.files.push_back(arg);
      continue;
    }
    if (arg == "--") {
      only_files = true;
      continue;
    }
    if (arg == "-h" || arg == "--help") {
      r.help = true;
      continue;
    }
    std::optional<std::string> given;
    if (auto equals = arg.find('='); arg.starts_with("--") && equals != std::string::npos) {
      given = arg.substr(equals + 1);
      arg = arg.substr(0, equals);
    }
    if (arg != "--schema" && arg != "--level" && arg != "--config" && arg != "--template" &&
        arg != "--task-container-defaults" && arg != "--checkpoint-storage" && arg != "-o" &&
        arg != "--output") {
      r.wrong = "unknown option '" + arg + "'";
      break;
    }
    if (!given && i + 1 == args.size()) {
      r.wrong = "option '" + arg + "' needs a value";
      break;
    }
    auto text = given ? *given : args[++i];
    if (arg == "--schema")
      r.schema = text;
    else if (arg == "--config")
      r.overrides.push_back(text);
    else if (arg == "--template")
      r.template_file = text;
    else if (arg == "--task-container-defaults")
      r.defaults_file = text;
    else if (arg == "--checkpoint-storage")
      r.storage_file = text;
    else if (arg == "--level" && (text == "sane" || text == "complete"))
      r.want = text == "sane" ? level::sane : level::complete;
    else if (arg == "--level")
      r.wrong = "--level is sane or complete, not '" + text + "'";
    else
      r.format = text;
  }
  return r;
}

class commands {
public:
  commands(std::istream& in, std::ostream& out, std::ostream& err) : in_(in), out_(out), err_(err) {}

  int run(const std::vector<std::string>& args) {
    if (args.empty() || args[0] == "help" || args[0] == "-h" || args[0] == "--help") {
      (args.empty() ? err_ : out_) << usage;
      return args.empty() ? faulty : ok;
    }
    auto r = parse(args);
    if (r.help) {
      out_ << usage;
      return ok;
    }
    if (!r.wrong.empty())
      return misused(r.wrong);
    if (r.schema && !config::is_schema(*r.schema))
      return misused("there is no schema '" + *r.schema + "'", "one of: " + all_schemas());
    const auto& verb = args[0];
    if (verb == "check")
      return r.schema ? answer(r, config::check_as) : check(r);
    if (verb == "complete")
      return r.schema ? answer(r, config::complete_as) : complete(r);
    if (verb == "merge")
      return merge(r);
    if (verb == "explain")
      return explain(r);
    if (verb == "schema")
      return schema(r);
    return misused("unknown command 'config " + verb + "'",
                   "one of: check, complete, merge, explain, schema");
  }

private:
  int misused(const std::string& what, const std::string& hint = "troupe config --help") {
    err_ << "error: " << what << "\nhint: " << hint << "\n";
    return faulty;
  }

  static std::string all_schemas() {
    std::string out;
    for (const auto& name : config::schema_names())
      out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  bool expect_files(const request& r, std::size_t least, std::size_t most, const char* form) {
    if (r.files.size() >= least && r.files.size() <= most)
      return true;
    misused("expected: troupe config " + std::string(form));
    return false;
  }

  std::optional<source> read(const std::string& file) {
    source s{file == "-" ? "<stdin>" : file, {}};
    std::ifstream opened;
    if (file != "-") {
      opened.open(file, std::ios::binary);
      if (!opened) {
        misused("cannot read '" + file + "'", "does the file exist, and may you read it?");
        return std::nullopt;
      }
    }
    std::istream& from = file == "-" ? in_ : opened;
    char block[65536];
    while (s.text.size() < most_bytes && (from.read(block, sizeof block), from.gcount() > 0))
      s.text.append(block, static_cast<std::size_t>(from.gcount()));
    if (file != "-" && from.bad()) {
      misused("cannot read '" + file + "'", "is it a directory?");
      return std::nullopt;
    }
    return s;
  }

  void show(const std::vector<diagnostic>& faults, const std::vector<source>& texts) {
    for (const auto& fault : faults) {
      std::string_view text;
      for (const auto& s : texts)
        if (s.file == fault.file)
          text = s.text;
      err_ << render(fault, text);
    }
  }

  static value as_json(const diagnostic& fault, bool with_file) {
    value v{{"path", fault.path}, {"message", fault.message}, {"line", fault.line}, {"column", fault.column}};
    if (!fault.hint.empty())
      v["hint"] = fault.hint;
    if (with_file)
      v["file"] = fault.file;
    return v;
  }

  static value as_json(const outcome& got, bool with_file = false) {
    value errors = value::array();
    for (const auto& fault : got.faults)
      errors.push_back(as_json(fault, with_file));
    return {{"ok", got.ok()}, {"errors", std::move(errors)}, {"value", got.config}};
  }

  outcome load(const request& r, const source& s, std::vector<source>& texts, bool& readable) {
    config::surroundings around;
    around.overrides = r.overrides;
    texts.push_back(s);
    if (r.template_file) {
      auto below = read(*r.template_file);
      readable = below.has_value();
      if (!readable)
        return {};
      around.template_text = below->text;
      texts.push_back({"template", below->text});
    }
    struct {
      const std::optional<std::string>& file;
      const char* schema;
      value& layer;
    } below[] = {{r.defaults_file, "task-container-defaults", around.task_container_defaults},
                 {r.storage_file, "checkpoint-storage", around.workspace_checkpoint_storage}};
    for (auto& one : below) {
      if (!one.file)
        continue;
      auto layer = read(*one.file);
      readable = layer.has_value();
      if (!readable)
        return {};
      auto checked = config::check_as(one.schema, layer->text, *one.file, level::sane);
      texts.push_back({*one.file, layer->text});
      if (!checked.ok())
        return checked;
      one.layer = std::move(checked.config);
    }
    return config::load_experiment(s.text, s.file, r.want, around);
  }

  int check(const request& r) {
    if (!expect_files(r, 1, SIZE_MAX, "check FILE..."))
      return faulty;
    if (!r.format.empty() && r.format != "json" && r.format != "text")
      return misused("-o is text or json, not '" + r.format + "'");
    bool good = true;
    value all = value::array(), doubts = value::array();
    for (const auto& file : r.files) {
      auto s = read(file);
      if (!s) {
        good = false;
        continue;
      }
      std::vector<source> texts;
      bool readable = true;
      auto got = load(r, *s, texts, readable);
      good = good && readable && got.ok();
      for (const auto& fault : got.faults)
        all.push_back(as_json(fault, true));
      auto warnings = config::warnings_of(s->text, s->file);
      for (const auto& one : warnings)
        doubts.push_back(as_json(one, true));
      if (r.format == "json")
        continue;
      show(got.faults, texts);
      show(warnings, texts);
      if (readable && got.ok())
        out_ << s->file << ": ok\n";
    }
    if (r.format == "json")
      out_ << to_json({{"ok", good}, {"errors", std::move(all)}, {"warnings", std::move(doubts)}}) << "\n";
    return good ? ok : faulty;
  }

  int complete(const request& r) {
    if (!expect_files(r, 1, 1, "complete FILE"))
      return faulty;
    auto s = read(r.files[0]);
    if (!s)
      return faulty;
    std::vector<source> texts;
    bool readable = true;
    auto got = load(r, *s, texts, readable);
    if (readable && got.ok() && r.want == level::sane)
      got = config::complete_as("experiment", to_json(got.config), s->file, level::sane);
    show(got.faults, texts);
    if (!readable || !got.ok())
      return faulty;
    out_ << to_json(got.config, 2) << "\n";
    return ok;
  }

  using question = outcome (*)(std::string_view schema, std::string_view text, std::string_view file,
                               level want);

  int answer(const request& r, question ask) {
    if (!expect_files(r, 1, 1, "check|complete --schema NAME [--level sane|complete] FILE"))
      return faulty;
    auto s = read(r.files[0]);
    if (!s)
      return faulty;
    auto got = ask(*r.schema, s->text, s->file, r.want);
    out_ << to_json(as_json(got)) << "\n";
    return got.ok() ? ok : faulty;
  }

  int merge(const request& r) {
    if (!expect_files(r, 2, 2, "merge [--schema NAME] HIGH LOW"))
      return faulty;
    auto high = read(r.files[0]), low = read(r.files[1]);
    if (!high || !low)
      return faulty;
    auto got =
      config::merge_as(r.schema.value_or("experiment"), high->text, high->file, low->text, low->file);
    if (r.schema) {
      out_ << to_json(as_json(got, true)) << "\n";
      return got.ok() ? ok : faulty;
    }
    show(got.faults, {*high, *low});
    if (!got.ok())
      return faulty;
    out_ << to_json(got.config, 2) << "\n";
    return ok;
  }

  int explain(const request& r) {
    if (!expect_files(r, 0, 1, "explain [KEY]"))
      return faulty;
    auto text = config::explain(r.files.empty() ? "" : r.files[0]);
    if (!text)
      return misused(text.error().what, "troupe config explain");
    out_ << *text;
    return ok;
  }

  int schema(const request& r) {
    if (!expect_files(r, 0, 1, "schema [NAME]"))
      return faulty;
    if (r.format == "markdown") {
      out_ << config::reference_page();
      return ok;
    }
    if (!r.format.empty() && r.format != "json")
      return misused("-o is json or markdown, not '" + r.format + "'");
    auto name = r.schema.value_or(r.files.empty() ? "experiment" : r.files[0]);
    auto schema = config::json_schema(name);
    if (!schema)
      return misused(schema.error().what, "one of: " + all_schemas());
    out_ << to_json(*schema, 2) << "\n";
    return ok;
  }

  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
};

} // namespace

int config_command(const std::vector<std::string>& args, std::istream& in, std::ostream& out,
                   std::ostream& err) {
  return commands(in, out, err).run(args);
}

} // namespace troupe::cli
