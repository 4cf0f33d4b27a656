#include "runtime/web/page.hpp"

#include "runtime/api/errors.hpp"
#include "runtime/api/gzip.hpp"
#include "runtime/api/origin.hpp"
#include "runtime/web/assets.hpp"
#include "system/whole_file.hpp"

#include <algorithm>

namespace troupe::web {
namespace {

using namespace api;
namespace fs = std::filesystem;

constexpr const char* no_page =
  "<!doctype html><html lang=\"en\"><head><meta "
  "charset=\"utf-8\"><title>Troupe</title></head><body><main><h1>This "
  "build has no web page</h1><p>It was built without Node. <code>./setup build</code> installs Node and "
  "builds "
  "the page in; <code>cmake -DTROUPE_WEBUI=ON</code> says what is missing.</p></main></body></html>\n";

void guard(response& x) {
  for (const auto& [key, text] : page_headers)
    x.headers.emplace_back(key, text);
}

response page(unsigned status, std::string text) {
  response x;
  x.status = status;
  x.content_type = "text/html; charset=utf-8";
  x.body = std::move(text);
  guard(x);
  return x;
}

response moved(const std::string& to) {
  response x = page(302, "");
  x.headers.emplace_back("Location", to);
  return x;
}

bool named(std::string_view list, std::string_view tag) { // If-None-Match: a list of tags such as "a", "b"
  return list == "*" || list.find(tag) != list.npos;
}

response sent(const call& c, const asset& file) {
  const bool zipped = !file.gzip.empty() && takes_gzip(c.headers.accept_encoding);
  const auto tag = "\"" + std::string(file.digest.substr(0, 32)) + (zipped ? "z\"" : "\"");
  response x;
  x.content_type = file.type;
  guard(x);
  x.headers.emplace_back("ETag", tag);
  x.headers.emplace_back("Vary", "Accept-Encoding");
  x.headers.emplace_back(
    "Cache-Control", file.path.starts_with("assets/") ? "public, max-age=31536000, immutable" : "no-cache");
  if (named(c.headers.if_none_match, tag)) {
    x.status = 304;
    return x;
  }
  if (zipped)
    x.headers.emplace_back("Content-Encoding", "gzip");
  x.body = zipped ? file.gzip : file.bytes;
  return x;
}

/// Whether a path names a file. Every other path is an address of the page, because only the page itself
/// knows its addresses.
bool is_file(std::string_view path) {
  return path == "assets" || path.starts_with("assets/") ||
         (path.find('/') == path.npos && path.find('.') != path.npos);
}

/// The page's first script reads this header, because it cannot read the cookie: if somebody is signed in, it
/// asks for more at once. The header is set in both cases, because a 304 changes only those stored headers
/// that it repeats.
response with_signed_in(response x, const call& c) {
  x.headers.emplace_back("Server-Timing", c.by.user_id != 0 ? "signed-in" : "signed-out");
  return x;
}

response from_binary(const call& c) {
  if (!has_assets())
    return page(503, no_page);
  const auto path = c.named("path");
  auto found = find_asset(path);
  if (!found && !is_file(path))
    found = find_asset("index.html");
  if (!found)
    return page(404, "no such file\n");
  return is_file(path) ? sent(c, *found) : with_signed_in(sent(c, *found), c);
}

const char* type_of(const fs::path& file) {
  const auto ending = file.extension();
  return ending == ".js"     ? "text/javascript; charset=utf-8"
         : ending == ".css"  ? "text/css; charset=utf-8"
         : ending == ".html" ? "text/html; charset=utf-8"
         : ending == ".svg"  ? "image/svg+xml"
                             : "application/octet-stream";
}

response from_folder(const fs::path& dir, const call& c) {
  const fs::path wanted(std::string(c.named("path")));
  const bool inside =
    std::none_of(wanted.begin(), wanted.end(), [](const auto& part) { return part == ".."; });
  auto file = dir / (is_file(wanted.string()) ? wanted : fs::path("index.html"));
  auto bytes = inside ? read_whole(file) : result<std::optional<std::string>>(std::nullopt);
  if (!bytes || !*bytes)
    return page(404, "no such file\n");
  response x;
  x.content_type = type_of(file);
  guard(x);
  x.headers.emplace_back("Cache-Control", "no-store");
  x.body = std::move(**bytes);
  return with_signed_in(std::move(x), c);
}

/// Answers without reading storage: a file of the page does not depend on facts.
handler give(std::function<response(const call&)> make) {
  return [make = std::move(make)](const call_ptr& c, const reply& back) { back(make(*c)); };
}

route at(std::string path, handler run) {
  return {"GET",     std::move(path), {action::view, thing::door}, std::move(run), "",
          "archive", "The web page."};
}

} // namespace

std::string our_page(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const auto end = path.find('/');
    if (end != 0)
      parts.push_back(path.substr(0, end));
    path = end == path.npos ? std::string_view{} : path.substr(end + 1);
  }
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  const auto part = [&](std::size_t i) { return i < parts.size() ? parts[i] : std::string_view{}; };
  if (part(0) != "det")
    return "/ui/";
  const auto tab = [](std::string_view name, std::initializer_list<std::string_view> known) {
    return std::find(known.begin(), known.end(), name) == known.end() ? std::string()
                                                                      : "/" + std::string(name);
  };
  const auto trial = [&](std::size_t i) {
    return "/ui/trials/" + std::string(part(i)) + tab(part(i + 1), {"metrics", "logs", "checkpoints"});
  };
  if (part(1) == "trials" && is_number(part(2)))
    return trial(2);
  if (part(1) == "experiments" && is_number(part(2)))
    return part(3) == "trials" && is_number(part(4))
             ? trial(4)
             : "/ui/experiments/" + std::string(part(2)) +
                 tab(part(3), {"trials", "checkpoints", "logs", "code"});
  if (part(1) == "clusters" || part(1) == "cluster")
    return "/ui/cluster";
  return part(1) == "experiments" ? "/ui/experiments" : "/ui/";
}

std::vector<route> page_routes(const fs::path& dir) {
  const auto file =
    dir.empty() ? give(from_binary) : give([dir](const call& c) { return from_folder(dir, c); });
  const auto lead =
    give([](const call& c) { return moved(our_page(c.target.substr(0, c.target.find('?')))); });
  return {at("/", lead), at("/det", lead), at("/det/{path*}", lead), at("/ui", file),
          at("/ui/{path*}", file)};
}

} // namespace troupe::web
