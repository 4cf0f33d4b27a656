#include "late_caller.hpp"

double call_mix(int first) {
  return late_mix(first, 2.5, 3, 4.5, 5, 6.5, 7, 8.5f, 9, 10.5, "9", 12.5, 13.5, 14.5, 15, 16.5);
}

std::string call_print(int number, double fraction) {
  char text[100];
  late_print(text, sizeof text, "%d %.2f %s %.1f", number, fraction, "and", fraction / 2);
  return text;
}

late::large call_make_large(int from, const std::string& text) { return late::make_large(from, text); }
void call_refuse(const std::string& why) { late::refuse(why); }
