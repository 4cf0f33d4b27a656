#pragma once
// Short functions for schemas of OpenAPI 3.0, with which bodies.cpp and answers.cpp are written.

#include "model/value.hpp"

namespace troupe::api::schema {

inline value text() { return {{"type", "string"}}; }
inline value flag() { return {{"type", "boolean"}}; }
inline value whole() { return {{"type", "integer"}, {"format", "int64"}}; }
inline value number() { return {{"type", "number"}}; }
inline value any_object() { return {{"type", "object"}}; }
inline value list_of(value items) { return {{"type", "array"}, {"items", std::move(items)}}; }

} // namespace troupe::api::schema
