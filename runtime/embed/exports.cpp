#include "runtime/embed/capi.hpp"

#include <stdlib.h>

namespace c = troupe::embedding::c;

troupe_node* troupe_open_json(const char* options) { return c::open_json(options); }
int troupe_call(troupe_node* node, const char* request, const void* in, size_t in_size, void** out,
                size_t* out_size) {
  return c::call_node(node, request, in, in_size, out, out_size);
}
void troupe_free(void* body) { free(body); }
int troupe_subscribe(troupe_node* node, const char* topics,
                     void (*heard)(const void* event, size_t size, void* with), void* with) {
  return c::subscribe_to(node, topics, heard, with);
}
void troupe_close(troupe_node* node) { c::close_node(node); }
const char* troupe_last_error(void) { return c::why(); }
