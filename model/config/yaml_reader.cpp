// YAML from libyaml's events. Scalars resolve as in Determined's master (YAML 1.1 of Go's yaml.v2), except
// that `y` and `n` stay strings.

#include "model/config/document.hpp"
#include "model/config/scalar.hpp"
#include "model/config/secrets.hpp"

#include <yaml.h>

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

namespace troupe::config {
namespace {

struct parser_closer {
  void operator()(yaml_parser_t* p) const { yaml_parser_delete(p); }
};

struct event {
  yaml_event_t raw{};
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { yaml_event_delete(&raw); }
  bool next(yaml_parser_t* parser) {
    yaml_event_delete(&raw);
    return yaml_parser_parse(parser, &raw) != 0;
  }
  place at() const {
    return {static_cast<int>(raw.start_mark.line) + 1, static_cast<int>(raw.start_mark.column) + 1};
  }
};

place place_from(const yaml_mark_t& mark) {
  return {static_cast<int>(mark.line) + 1, static_cast<int>(mark.column) + 1};
}

std::string_view view(const yaml_char_t* text) {
  return text ? std::string_view(reinterpret_cast<const char*>(text)) : std::string_view();
}

class yaml_reader {
public:
  yaml_reader(std::string_view text, std::string_view file, const limits& bound)
      : text_(text), file_(file), bound_(bound) {}

  document read() {
    if (!yaml_parser_initialize(&parser_)) {
      stop({1, 1}, "no memory to read this text", "");
      return std::move(out_);
    }
    std::unique_ptr<yaml_parser_t, parser_closer> closer(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()),
                                 text_.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    read_stream();
    return std::move(out_);
  }

private:
  /// Takes the next event; false at the end, and after a fault that ends the reading.
  bool advance() {
    if (stopped_)
      return false;
    if (!event_.next(&parser_)) {
      syntax_fault();
      return false;
    }
    return true;
  }

  void read_stream() {
    out_.root.at = {1, 1};
    while (advance()) {
      switch (event_.raw.type) {
      case YAML_STREAM_START_EVENT:
        break;
      case YAML_STREAM_END_EVENT:
        return;
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0)
          return stop(event_.at(), "a second YAML document begins here; a configuration is one document",
                      "remove the line '---' and what follows it");
        anchors_.clear();
        if (advance())
          read_node(out_.root, 1);
        break;
      default:
        break;
      }
    }
  }

  /// Reads the value that the current event begins.
  void read_node(node& out, int depth) {
    out.at = event_.at();
    if (depth > bound_.depth)
      return stop(out.at, "nested deeper than " + std::to_string(bound_.depth) + " levels", "");
    if (++nodes_ > bound_.nodes)
      return stop(out.at, too_many(), "");
    const auto& raw = event_.raw;
    switch (raw.type) {
    case YAML_SCALAR_EVENT: {
      const auto& scalar = raw.data.scalar;
      std::string_view written(reinterpret_cast<const char*>(scalar.value), scalar.length);
      resolve_scalar(out, written, scalar.style == YAML_PLAIN_SCALAR_STYLE, view(scalar.tag));
      if (scalar.anchor)
        remember(std::string(view(scalar.anchor)), out);
      return;
    }
    case YAML_SEQUENCE_START_EVENT: {
      auto anchor = std::string(view(raw.data.sequence_start.anchor));
      open(anchor);
      out.type = kind::list;
      bracket inside(*this, raw.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE, out.at, "[]");
      while (advance() && event_.raw.type != YAML_SEQUENCE_END_EVENT) {
        trail::guard step(trail_, out.items.size());
        read_node(out.items.emplace_back(), depth + 1);
      }
      return remember(anchor, out);
    }
    case YAML_MAPPING_START_EVENT: {
      auto anchor = std::string(view(raw.data.mapping_start.anchor));
      open(anchor);
      bracket inside(*this, raw.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE, out.at, "{}");
      read_map(out, depth);
      return remember(anchor, out);
    }
    case YAML_ALIAS_EVENT:
      return copy_alias(out, depth);
    default:
      return;
    }
  }

  /// A list or map in brackets while it is read.
  class bracket {
  public:
    bracket(yaml_reader& reader, bool is_flow, place at, std::string_view both)
        : reader_(reader), is_flow_(is_flow) {
      if (is_flow_)
        reader_.brackets_.emplace_back(at, both);
    }
    bracket(const bracket&) = delete;
    bracket& operator=(const bracket&) = delete;
    ~bracket() {
      if (is_flow_)
        reader_.brackets_.pop_back();
    }

  private:
    yaml_reader& reader_;
    bool is_flow_;
  };

  /// The keys of a map so far. While they are few, as in most maps, they are searched one by one.
  class places {
  public:
    explicit places(const node& map) : map_(map) {}
    /// Where `key` stood before, if it did.
    std::optional<place> of(const std::string& key) {
      if (map_.entries.size() < few) {
        const auto* found = map_.entry_of(key);
        return found ? std::optional(found->at) : std::nullopt;
      }
      for (; known_ < map_.entries.size(); ++known_)
        all_.emplace(map_.entries[known_].key, map_.entries[known_].at);
      auto found = all_.find(key);
      return found == all_.end() ? std::nullopt : std::optional(found->second);
    }

  private:
    static constexpr std::size_t few = 24;
    const node& map_;
    std::size_t known_ = 0;
    std::unordered_map<std::string, place> all_;
  };

  void read_map(node& out, int depth) {
    out.type = kind::map;
    places seen(out);
    out.entries.reserve(depth == 1 ? 24 : 6);   // sizes of most configurations
    std::vector<std::pair<place, node>> merged; // values of `<<`, applied last: own keys win
    while (advance() && event_.raw.type != YAML_MAPPING_END_EVENT) {
      auto at = event_.at();
      if (event_.raw.type != YAML_SCALAR_EVENT) {
        if (event_.raw.type == YAML_ALIAS_EVENT)
          return stop(at, "an alias cannot be a key here; a key is a string", "");
        return stop(at, "a list or map cannot be a key; a key is a string", "");
      }
      const auto& scalar = event_.raw.data.scalar;
      std::string_view written(reinterpret_cast<const char*>(scalar.value), scalar.length);
      if (written == "<<" && scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (!advance())
          return;
        trail::guard step(trail_, "<<");
        merged.emplace_back(at, node{});
        read_node(merged.back().second, depth + 1);
        continue;
      }
      std::string key(written);
      if (auto known = seen.of(key)) {
        read_again(key, at, *known, depth);
        continue;
      }
      out.entries.push_back({std::move(key), at, {}});
      auto& made = out.entries.back(); // stays in place while its value is read
      if (!advance())
        return;
      trail::guard step(trail_, made.key);
      read_node(made.what, depth + 1);
    }
    for (auto& [at, from] : merged)
      merge_into(out, from, at, seen);
  }

  /// Reads the value of a repeated key only for its own faults.
  void read_again(const std::string& key, place at, place first, int depth) {
    trail::guard step(trail_, key);
    fault(at,
          "the key '" + quotable(key) + "' is given twice; the first is at line " +
            std::to_string(first.line),
          "remove one of the two");
    node dropped;
    if (advance())
      read_node(dropped, depth + 1);
  }

  void merge_into(node& out, node& from, place at, places& seen) {
    if (from.is(kind::list)) {
      for (auto& item : from.items)
        merge_into(out, item, at, seen);
      return;
    }
    if (!from.is(kind::map))
      return fault(at, "a merge key ('<<') takes a map or a list of maps", "");
    for (auto& e : from.entries)
      if (!seen.of(e.key))
        out.entries.push_back(std::move(e));
  }

  void resolve_scalar(node& out, std::string_view written, bool plain, std::string_view tag) {
    const auto wrong = resolve(out, written, plain, tag);
    if (wrong.empty())
      return;
    if (trail_.leads_to_secret()) // without quotes, a secret that begins with `!` is read as a tag
      fault(out.at, "the value does not fit its tag", "put it in quotes");
    else
      fault(out.at, wrong, "");
  }

  void open(const std::string& anchor) {
    if (!anchor.empty())
      anchors_[anchor] = {}; // open until remembered, so that an alias inside it is seen as a cycle
  }

  struct anchored {
    std::shared_ptr<const node> what; ///< null while it is still being read
    std::size_t nodes = 0;
    int depth = 0;
  };

  void remember(const std::string& anchor, const node& made) {
    if (anchor.empty() || stopped_)
      return;
    anchored kept;
    count(made, 1, kept);
    if (nodes_ += kept.nodes; nodes_ > bound_.nodes)
      return stop(made.at, too_many(), "");
    kept.what = std::make_shared<const node>(made);
    anchors_[anchor] = std::move(kept);
  }

  static void count(const node& n, int depth, anchored& sum) {
    ++sum.nodes;
    sum.depth = std::max(sum.depth, depth);
    for (const auto& item : n.items)
      count(item, depth + 1, sum);
    for (const auto& e : n.entries)
      count(e.what, depth + 1, sum);
  }

  void copy_alias(node& out, int depth) {
    auto name = std::string(view(event_.raw.data.alias.anchor));
    auto at = event_.at();
    auto known = anchors_.find(name);
    if (known == anchors_.end() && trail_.leads_to_secret())
      return stop(at, "an alias without its anchor before it", "put it in quotes");
    if (known == anchors_.end())
      return stop(at, "the alias '*" + name + "' has no anchor '&" + name + "' before it", "");
    if (!known->second.what)
      return stop(at, "the alias '*" + name + "' stands inside its own anchor: it would never end", "");
    if (nodes_ += known->second.nodes; nodes_ > bound_.nodes)
      return stop(at, too_many(), "aliases are expanded; an alias of aliases grows fast");
    if (depth + known->second.depth - 1 > bound_.depth)
      return stop(at, "nested deeper than " + std::to_string(bound_.depth) + " levels", "");
    out = *known->second.what;
    out.at = at;
  }

  std::string too_many() const {
    return "more than " + std::to_string(bound_.nodes) + " values after aliases are expanded";
  }

  void syntax_fault() {
    auto problem = std::string(parser_.problem ? parser_.problem : "not YAML");
    auto context = std::string_view(parser_.context ? parser_.context : "");
    auto at = place_from(parser_.problem_mark);
    std::string hint;
    bool at_end = problem.starts_with("did not find expected") && is_at_end(at);
    if (parser_.error == YAML_READER_ERROR) {
      at = place_of_byte(parser_.problem_offset);
      problem = "this text is not UTF-8, or holds a control character (" + problem + ")";
    } else if (context == "while scanning a quoted scalar" && problem == "found unexpected end of stream") {
      at = place_from(parser_.context_mark);
      problem = "the quote that opens here is never closed";
      hint = "close it on the same line";
    } else if (at_end && !brackets_.empty()) {
      at = brackets_.back().first;
      auto both = std::string(brackets_.back().second);
      problem = "the '" + both.substr(0, 1) + "' that opens here is never closed";
      hint = "close it with '" + both.substr(1) + "'";
    } else if (starts_with_tab(at)) {
      problem = "a tab cannot indent YAML";
      hint = "use spaces";
    } else if (problem == "mapping values are not allowed in this context") {
      problem = "a ': ' is not allowed here";
      hint = "check the indentation of this line, or quote a value that holds ': '";
    } else if (problem == "could not find expected ':'") {
      problem = "a key without ': ' and a value";
      at = place_from(parser_.context_mark);
      hint = "write 'key: value'; a line that continues a value must be indented deeper";
    } else if (problem == "did not find expected key" || problem == "did not find expected '-' indicator") {
      hint = "check the indentation of this line against the lines above; the block begins at line " +
             std::to_string(parser_.context_mark.line + 1);
    } else if (!context.empty()) {
      problem +=
        " " + std::string(context) + " that begins at line " + std::to_string(parser_.context_mark.line + 1);
    }
    stop(at, "cannot read this as YAML: " + problem, hint);
  }

  /// Whether nothing but blank space follows `at`.
  bool is_at_end(place at) const {
    std::size_t begin = 0;
    for (int line = 1; line < at.line; ++line) {
      begin = text_.find('\n', begin);
      if (begin == std::string_view::npos)
        return true;
      ++begin;
    }
    return text_.find_first_not_of(" \t\r\n", begin + static_cast<std::size_t>(at.column - 1)) ==
           std::string_view::npos;
  }

  /// Whether the line of `at` is indented with a tab.
  bool starts_with_tab(place at) const {
    std::size_t begin = 0;
    for (int line = 1; line < at.line; ++line) {
      begin = text_.find('\n', begin);
      if (begin == std::string_view::npos)
        return false;
      ++begin;
    }
    auto first = text_.find_first_not_of(' ', begin);
    return first != std::string_view::npos && text_[first] == '\t';
  }

  place place_of_byte(std::size_t offset) const {
    place at{1, 1};
    for (std::size_t i = 0; i < offset && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++at.line;
        at.column = 1;
      } else if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) {
        ++at.column;
      }
    }
    return at;
  }

  void fault(place at, std::string message, std::string hint) {
    if (out_.faults.size() < most_faults)
      out_.faults.push_back({file_, at.line, at.column, trail_.text(), std::move(message), std::move(hint)});
  }

  void stop(place at, std::string message, std::string hint) {
    if (!stopped_)
      fault(at, std::move(message), std::move(hint));
    stopped_ = true;
    out_.readable = false;
  }

  std::string_view text_;
  std::string file_;
  limits bound_;
  yaml_parser_t parser_{};
  event event_;
  document out_;
  trail trail_;
  std::vector<std::pair<place, std::string_view>> brackets_; ///< brackets that are open
  std::map<std::string, anchored, std::less<>> anchors_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
  bool stopped_ = false;
};

} // namespace

document read_yaml(std::string_view text, std::string_view file, const limits& bound) {
  return yaml_reader(text, file, bound).read();
}

document read_document(std::string_view text, std::string_view file, const limits& bound) {
  if (text.size() > bound.text_bytes) {
    document refused;
    refused.faults.push_back({std::string(file), 1, 1, "",
                              "the text has more than " + std::to_string(bound.text_bytes) +
                                " bytes, the most that a configuration may have",
                              "keep data in files of the context directory"});
    return refused;
  }
  auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[' || text[first] == '"'))
    if (auto json = read_json(text, file, bound); json.readable)
      return json; // otherwise it may be YAML in flow style
  return read_yaml(text, file, bound);
}

} // namespace troupe::config
