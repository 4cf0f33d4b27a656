/* A cluster inside a plain C program: opens a node, trains once, prints what it hears, and ends.
 *
 *   plain DATA_DIR JOB_DIR
 *
 * Bodies are msgpack. What is sent here is a map of texts and what is looked for is one number, so a few lines do; a program that
 * does more takes a msgpack library. */
#include <troupe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t put_text(unsigned char* to, const char* text) {
  size_t n = strlen(text);
  to[0] = 0xdb; /* a string with four bytes of length */
  to[1] = (unsigned char)(n >> 24), to[2] = (unsigned char)(n >> 16), to[3] = (unsigned char)(n >> 8), to[4] = (unsigned char)n;
  memcpy(to + 5, text, n);
  return n + 5;
}

/* The small number behind a key, or -1. */
static long number_behind(const unsigned char* body, size_t size, const char* key) {
  size_t n = strlen(key), i;
  for (i = 0; i + n + 2 <= size; ++i)
    if (body[i] == (0xa0 | n) && memcmp(body + i + 1, key, n) == 0) {
      const unsigned char* at = body + i + 1 + n;
      if (*at < 0x80)
        return *at;
      if (*at == 0xcc && i + n + 3 <= size)
        return at[1];
      if (*at == 0xcd && i + n + 4 <= size)
        return at[1] << 8 | at[2];
    }
  return -1;
}

static int holds(const unsigned char* body, size_t size, const char* text) {
  size_t n = strlen(text), i;
  for (i = 0; i + n <= size; ++i)
    if (memcmp(body + i, text, n) == 0)
      return 1;
  return 0;
}

struct heard {
  volatile int metrics, over;
};

static void hear(const void* event, size_t size, void* with) { /* on a thread of the node */
  struct heard* to = with;
  if (holds(event, size, "experiment_changed") && (holds(event, size, "COMPLETED") || holds(event, size, "ERROR")))
    to->over = holds(event, size, "STOPPING") ? to->over : 1;
  else if (holds(event, size, "validation") && holds(event, size, "metric"))
    ++to->metrics;
}

int main(int argc, char** argv) {
  struct heard heard = {0, 0};
  const struct timespec moment = {0, 20 * 1000 * 1000};
  char options[4200];
  unsigned char body[9000];
  size_t size = 0, out_size = 0;
  void* out = NULL;
  long id;
  int status, i;
  troupe_node* node;
  if (argc < 3 || strlen(argv[1]) > 4000 || strlen(argv[2]) > 4000) {
    fprintf(stderr, "plain DATA_DIR JOB_DIR\n");
    return 2;
  }
  snprintf(options, sizeof options, "{\"data_dir\": \"%s\", \"http\": \"off\", \"cpu_slots\": 1}", argv[1]);
  if (!(node = troupe_open_json(options))) {
    fprintf(stderr, "%s\n", troupe_last_error());
    return 1;
  }
  if (troupe_subscribe(node, "experiment, metric", hear, &heard) != 0)
    fprintf(stderr, "%s\n", troupe_last_error());
  body[size++] = 0x82; /* a map of two */
  size += put_text(body + size, "config");
  size += put_text(body + size, "{entrypoint: python3 train.py, hyperparameters: {lr: 0.1}, searcher: {name: single, metric: loss}}");
  size += put_text(body + size, "context_dir");
  size += put_text(body + size, argv[2]);
  status = troupe_call(node, "POST /troupe/v1/experiments", body, size, &out, &out_size);
  id = status == 200 ? number_behind(out, out_size, "id") : -1;
  troupe_free(out);
  if (id < 0) {
    fprintf(stderr, "%d: %s\n", status, troupe_last_error());
    troupe_close(node);
    return 1;
  }
  printf("experiment %ld\n", id);
  for (i = 0; i < 9000 && !(heard.over && heard.metrics >= 20); ++i)
    nanosleep(&moment, NULL);
  status = troupe_call(node, "GET /api/v1/experiments", NULL, 0, &out, &out_size);
  printf("status %d, %s, %d numbers heard\n", status, holds(out, out_size, "STATE_COMPLETED") ? "completed" : "not completed", heard.metrics);
  i = holds(out, out_size, "STATE_COMPLETED");
  troupe_free(out);
  troupe_close(node);
  return i && heard.metrics == 20 ? 0 : 1;
}
