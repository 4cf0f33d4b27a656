#pragma once
// Why a rung stopped a trial, as fields and as a sentence: "rung 1 (4 epochs): 0.8417, needed 0.9123".

#include "searchers/method.hpp"

#include <string>

namespace troupe::searchers {

stop_trial beaten(int rung, double units, const std::string& time_metric, const report& r, double needed);
stop_trial full_length(int rung, double units, const std::string& time_metric, double metric);

} // namespace troupe::searchers
