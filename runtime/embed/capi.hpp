#pragma once
// What the functions of <troupe.h> do. Their own source sees only that header, so that the description of the
// interface (abi/) holds nothing else.

#include "runtime/embed/troupe.h"

namespace troupe::embedding::c {

troupe_node* open_json(const char* options) noexcept;
int call_node(troupe_node* node, const char* request, const void* in, size_t in_size, void** out,
              size_t* out_size) noexcept;
int subscribe_to(troupe_node* node, const char* topics, void (*heard)(const void*, size_t, void*),
                 void* with) noexcept;
void close_node(troupe_node* node) noexcept;
const char* why() noexcept;

} // namespace troupe::embedding::c
