/* Troupe inside another program, for C and whatever can call it: a node, the whole REST API by one function, and events.
 *
 * Thread-safe except for troupe_close(), after which the node is gone. No function installs a signal handler or writes to the
 * standard output. Functions are only ever added here; the library's symbols carry the version TROUPE_0. */
#ifndef TROUPE_H
#define TROUPE_H

#include <stddef.h>

#if defined(__GNUC__)
#define TROUPE_EXPORT __attribute__((visibility("default")))
#else
#define TROUPE_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct troupe_node troupe_node;

/* Opens or recovers a node, which is ready for work when this returns. `options` is a JSON object:
 *   "data_dir"   text, required: made where it is missing; only one node at a time holds it
 *   "http"       "off" (default), or "HOST:PORT" on loopback; port 0 is any free one
 *   "cpu_slots"  number (default 0: the processors that this process may use)
 *   "store"      "disk" (default) or "memory"
 *   "python"     text: folder of the tasks' python3
 *   "name"       text: name of the agent (default: the host's name)
 *   "shared_rocksdb"  true leaves RocksDB's background threads to the host (default false)
 *   "web"        false leaves the web page out of the port and of what the REST API answers (default true)
 * Returns NULL where that fails; troupe_last_error() says why. */
TROUPE_EXPORT troupe_node* troupe_open_json(const char* options);

/* Calls the REST API as the user admin and returns the HTTP status. `request` is a method and a target:
 * "GET /api/v1/experiments?limit=2". `in` (may be NULL) is the body as msgpack. `*out` and `*out_size` (both may be NULL) get the
 * answer's body as msgpack: of JSON its value, of a stream of JSON lines an array of them, of anything else a string; free it
 * with troupe_free(). A status of 400 or more comes with a body that says why, and so does troupe_last_error().
 * `request` may also be the name of a command of docs/messages.md that cluster, node or desk take: "trial.kill". `in` is its fields then.
 * In "POST /troupe/v1/experiments" the field "context_dir" names a folder or file of this host that the trials get. */
TROUPE_EXPORT int troupe_call(troupe_node* node, const char* request, const void* in, size_t in_size, void** out, size_t* out_size);

/* Frees a body that troupe_call() returned; NULL does nothing. */
TROUPE_EXPORT void troupe_free(void* body);

/* From now on `heard` is called for each event of the topics (words with commas between; "experiment", "trial", "allocation", or
 * "all"), in order, on a thread of the node, with a map as msgpack: "sequence", "entity" ("trial/3"), "type" ("run_started"), "at"
 * and the event's fields. With the topic "metric" also for each metric: "type": "metric", "experiment", "trial", "step", "name",
 * "value", "validation". The bytes are valid until `heard` returns; it must not wait or close the node. Returns 0, or -1 and
 * troupe_last_error(). */
TROUPE_EXPORT int troupe_subscribe(troupe_node* node, const char* topics, void (*heard)(const void* event, size_t size, void* with),
                                   void* with);

/* Ends the tasks and the node; no thread is left when it returns. NULL does nothing. */
TROUPE_EXPORT void troupe_close(troupe_node* node);

/* Why the last call of this thread failed: "MESSAGE" or "MESSAGE\nhint: HINT". "" before any has. Good until the next call of this
 * thread. */
TROUPE_EXPORT const char* troupe_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
