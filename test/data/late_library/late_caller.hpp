#pragma once

#include "late_library.hpp"

double call_mix(int first);
std::string call_print(int number, double fraction);
late::large call_make_large(int from, const std::string& text);
void call_refuse(const std::string& why);
