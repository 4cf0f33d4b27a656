/* A libnvidia-ml.so.1 for tests: two GPUs, the second of which is lost while FAKE_NVML_LOST is set. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static char devices[2];
static int started;

static int index_of(void* device) { return (int)((char*)device - devices); }
static int lost(void* device) { return index_of(device) == 1 && getenv("FAKE_NVML_LOST"); }

int nvmlInit_v2(void) {
  if (getenv("FAKE_NVML_NO_DRIVER"))
    return 9;
  ++started;
  return 0;
}
int nvmlShutdown(void) { return --started < 0; }
int nvmlDeviceGetCount_v2(unsigned* n) {
  *n = 2;
  return started > 0 ? 0 : 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** device) {
  if (i > 1)
    return 2;
  *device = devices + i;
  return 0;
}
int nvmlDeviceGetName(void* device, char* to, unsigned length) {
  snprintf(to, length, "Fake GPU %c", 'A' + index_of(device));
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* to, unsigned length) {
  snprintf(to, length, "GPU-%d-fake", index_of(device));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  if (lost(device))
    return 15;
  total_free_used[0] = 16ULL << 30;
  total_free_used[2] = (1ULL + index_of(device)) << 30;
  total_free_used[1] = total_free_used[0] - total_free_used[2];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_memory) {
  if (lost(device))
    return 15;
  gpu_memory[0] = 40 + 10 * index_of(device);
  gpu_memory[1] = 5;
  return 0;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (sensor != 0 || lost(device))
    return 15;
  *celsius = 60 + index_of(device);
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  if (index_of(device) != 0 || type != 1 || counter != 0)
    return 3; /* not supported */
  *errors = 7;
  return 0;
}
const char* nvmlErrorString(int why) { return why == 15 ? "GPU is lost" : why == 9 ? "Driver Not Loaded" : "Unknown Error"; }
