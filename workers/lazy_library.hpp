#pragma once
// Calls into a shared library that is loaded when it is first needed. A host that embeds Troupe, packs no
// archive and calls no server then does not map these libraries, which bring a dozen others along.

#include "model/result.hpp"

#include <cstddef>
#include <dlfcn.h>

namespace troupe {

/// A name as an argument of a template.
template <std::size_t N>
struct literal {
  char text[N];
  constexpr literal(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      text[i] = from[i];
  }
};

/// Safe from any thread; the library stays loaded. `load()` fails with errc::not_found and the loader's text.
/// No call may be made before it has succeeded.
template <literal Soname>
struct lazy_library {
  static void* handle() {
    static void* const loaded = ::dlopen(Soname.text, RTLD_NOW | RTLD_LOCAL);
    return loaded;
  }
  static result<void> load() {
    if (handle())
      return {};
    const char* why = ::dlerror();
    return error{errc::not_found, std::string("the library ") + Soname.text +
                                    " cannot be loaded: " + (why ? why : "it is not installed")};
  }
};

/// One function of the library, called as the function itself is.
template <class Library, literal Name, class F>
struct lazy_call;

template <class Library, literal Name, class R, class... A>
struct lazy_call<Library, Name, R(A...)> {
  R operator()(A... arguments) const {
    static const auto call = reinterpret_cast<R (*)(A...)>(::dlsym(Library::handle(), Name.text));
    return call(arguments...);
  }
};

template <class Library, literal Name, class R, class... A>
struct lazy_call<Library, Name, R(A..., ...)> {
  template <class... More>
  R operator()(A... arguments, More... more) const {
    static const auto call = reinterpret_cast<R (*)(A..., ...)>(::dlsym(Library::handle(), Name.text));
    return call(arguments..., more...);
  }
};

/// Hides the function of that name in one of our namespaces, so that code reads as if it were linked.
#define TROUPE_LAZY_CALL(library, name)                                                                      \
  inline constexpr ::troupe::lazy_call<library, #name, decltype(::name)> name

} // namespace troupe
