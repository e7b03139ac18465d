/* client.h - options, requests, replies and output of the commands that talk to a controller.
 *
 *     struct client client;
 *     int rc = client_open(&client, &options);
 *     rc = client_call(&client, &(struct client_request){.method = "GET", .path = path}, &reply);
 *     ...
 *     client_reply_done(&reply); client_close(&client);
 *
 * A function that returns an exit code (cmd.h) other than EXIT_OK has printed the reason on standard error.
 */
#ifndef PHX_CMD_CLIENT_H
#define PHX_CMD_CLIENT_H

#include <getopt.h>

#include "doc/json.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "core/kinds/kinds.h"
#include "net/http_client.h"

/* --- options that every client command takes --------------------------------------------------- */

struct client_options {
    const char *server;     /* --server, else $PHALANX_SERVER, else the kubeconfig's, else loopback */
    const char *namespace_; /* -n; NULL: "default" */
    bool all_namespaces;    /* -A */
    bool help;              /* -h, --help */
};
#define CLIENT_SHORT_OPTIONS "s:n:Ah"
#define CLIENT_LONG_OPTIONS                                                                                  \
    {"server", required_argument, NULL, 's'}, {"namespace", required_argument, NULL, 'n'},                   \
        {"all-namespaces", no_argument, NULL, 'A'},                                                          \
    {                                                                                                        \
        "help", no_argument, NULL, 'h'                                                                       \
    }
#define CLIENT_HELP                                                                                          \
    "  -n, --namespace NAME   the namespace (default: default)\n"                                            \
    "  -s, --server URL       the controller (default: $PHALANX_SERVER, else that of the kubeconfig file\n"  \
    "                         $PHALANX_CONFIG or $KUBECONFIG, whose credentials are used, else\n"            \
    "                         127.0.0.1:7070, with those of the `phalanx up` of this user)\n"                \
    "  -h, --help             this text\n"
#define CLIENT_EXIT_HELP                                                                                     \
    "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 no controller answers, 5 timed out.\n"
/* Takes one of the options above, by the letter that getopt returned. Returns false for any other letter. */
bool client_option(struct client_options *options, int letter, const char *value);
/* Returns the namespace of -n, or "default". */
const char *client_namespace(const struct client_options *options);

/* --- kinds ------------------------------------------------------------------------------------- */

/* Finds a kind by any of its names: plural, singular, kind, short name, alias. Returns NULL if there is
 * none. */
const struct resource *kind_find(struct str name);
/* Finds the kind of a document. Returns NULL if the kind is not served. */
const struct resource *kind_of(struct str api_version, struct str kind);
/* prints that the kind is unknown, and which one was probably meant */
void kind_say_unknown(struct str name);
/* Returns the kind whose name is nearest to `kind`, in this version if the kind is served in it. Returns NULL
 * if no name is near. */
const struct resource *kind_nearest(struct str api_version, struct str kind);
/* Splits "jobset/x" or "jobsets.jobset.x-k8s.io/x". Returns false, after a message, if the text is not
 * KIND/NAME with a known kind. */
bool kind_split(const char *text, const struct resource **ret_kind, struct str *ret_name);
/* Removes a leading KIND from arguments of the form KIND NAME...; arguments of the form KIND/NAME... and
 * *ret_kind stay as they are. Returns false, after a message, if the kind is unknown or no name follows. */
bool kind_leading(char ***args, int *count, const struct resource **ret_kind);
/* Appends the path of an object, or of a list if `name` is empty (in all namespaces if `namespace_` is
 * NULL). */
void kind_path(struct buf *out, const struct resource *kind, const char *namespace_, struct str name);
void url_add(struct buf *out, struct str text); /* appends the text percent-encoded */

/* --- requests ---------------------------------------------------------------------------------- */

enum { CLIENT_CONNECT_MS = 5000 };

struct client {
    struct http_client *http;   /* for an http:// URL; else NULL */
    struct https_client *https; /* for any other URL; else NULL */
    int ca_fd, cert_fd, key_fd; /* memory files with the kubeconfig's certificates and key; -1: none */
    struct buf bearer;          /* the kubeconfig's token; empty: none */
    struct buf server;          /* URL, without a trailing slash */
    struct buf servers;         /* all servers that were named, separated by commas */
    bool image_said;            /* a warning about a container image was printed; further ones are not */
    void (*on_tick)(void *context); /* called about once a second while a stream is silent; NULL: nothing */
    void *tick_context;
    bool quiet; /* prints no message about a server that does not answer */
};
struct client_request {
    const char *method; /* NULL: GET */
    struct str path;    /* with query */
    const char *accept, *content_type;
    struct str body;
    int64_t timeout_ms; /* 0: one minute */
};
struct client_reply {
    int code;
    struct buf text;
    struct arena arena;
    struct doc *doc; /* NULL: not JSON */
};

/* Finds the server and its credentials, and returns EXIT_OK; on failure ends the process, after a message.
 * The program without HTTPS may run phalanx-full here in its place (full.h), so a command opens its client
 * before it reads standard input. */
int client_open(struct client *client, const struct client_options *options);
void client_close(struct client *client);
/* Performs a request. *ret_reply is valid with EXIT_OK alone, whatever its HTTP code; the caller frees it
 * with client_reply_done. A request whose connection breaks before the answer is sent again, to the next
 * server that accepts a connection, for up to half a minute. A write is applied once (docs/ha.md, "Writes
 * without an answer"). */
int client_call(struct client *client, const struct client_request *request, struct client_reply *ret_reply);
void client_reply_done(struct client_reply *reply);
/* Prints the Status of a reply with a code >= 400, after `doing` (what the command did; may be NULL), and
 * returns its exit code. */
int client_refused(const struct client_reply *reply, const char *doing);
/* As client_call, but also prints refusals: with EXIT_OK *ret_reply is an object or a list. */
int client_do(struct client *client, const struct client_request *request, struct client_reply *ret_reply);
/* As client_do, for GET path. */
int client_get(struct client *client, struct str path, struct client_reply *ret_reply);

/* Reads a stream of lines (a watch) until it ends, `on_line` returns false (then *ret_ended is true), or
 * `timeout_ms` (0: no limit) have passed. Returns EXIT_TIMEOUT if the time ran out, otherwise the usual
 * codes; EXIT_OK if the connection broke or the server answered 410 (the version is too old). */
typedef bool client_line_fn(void *context, struct str line);
int client_stream(struct client *client, struct str path, const char *accept, int64_t timeout_ms,
                  client_line_fn *on_line, void *context, bool *ret_ended);

/* config.c: reads server and credentials from the current context of the kubeconfig file $PHALANX_CONFIG or
 * else $KUBECONFIG. If neither is set, reads the kubeconfig file of the cluster that `phalanx up` runs at
 * `server` (local.h); NULL: no server was named. Returns false, after a message, if the file cannot be
 * used. */
bool client_read_config(struct client *client, const char *server);
#define CLIENT_SERVER_DEFAULT "http://127.0.0.1:7070"

/* --- watching objects -------------------------------------------------------------------------- */

/* Lists objects and then watches them. Calls `on_object` for each object and each change; `type` is ADDED,
 * MODIFIED or DELETED, and the object is valid during the call. Calls it with BEGIN and SYNCED (object NULL)
 * before and after each list: objects that were not ADDED in between no longer exist. Lists again after the
 * server was unreachable or the version is too old. Returns EXIT_OK when on_object returns false,
 * EXIT_TIMEOUT at `deadline_ns`, or another exit code if the server refuses or the first list finds no
 * server. */
typedef bool watch_fn(void *context, const char *type, const struct doc *object);
int client_watch(struct client *client, struct str list_path, struct str query, int64_t deadline_ns,
                 watch_fn *on_object, void *context);

int64_t client_clock(void); /* monotonic, for deadlines */
int64_t client_wall(void);

/* --- output ------------------------------------------------------------------------------------ */

bool output_is_terminal(void); /* standard output */
/* Returns the size of the screen in characters. If standard output is not a terminal, the columns are
 * $COLUMNS if set, else there is no limit (INT_MAX). */
void output_size(int *ret_columns, int *ret_lines);
/* Appends `text`, broken at blanks into lines of at most `width` characters. The first line begins at column
 * `at`, which the caller has reached; the others are indented by `indent`. */
void put_wrapped(struct buf *out, struct str text, size_t width, size_t at, size_t indent);
void put_count(struct buf *out, int64_t count, const char *noun); /* "1 process", "3 processes" */
void put_clock(struct buf *out, int64_t wall_ns); /* "17:03:25.454714": the local time of day */
bool output_colors(void);                         /* a terminal, and NO_COLOR is not set */
const char *color_of(struct str word);            /* escape for a state word; "" without colours */
const char *color_end(void);
/* Writes `out` to standard output, flushes, and empties `out`. Control characters in objects and messages do
 * not reach the terminal: the only escape sequences are those of color_of. */
void output_write(struct buf *out);
/* Prints through output_write. Use it for lines with text from a server or a file. */
void output_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Replaces control characters by '?', except newlines, tabs and, with `colors`, the sequences of color_of. */
void output_clean(struct buf *text, bool colors);
/* Escapes the control characters that JSON may contain unescaped, which output_clean would replace. */
void output_escape(struct buf *json);
/* Prints "phalanx: COMMAND: ...\n" on standard error, without control characters. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the value at a dotted path of an object, such as "status.phase". */
struct str doc_text(const struct doc *object, const char *path); /* "" if absent or not a string */
int64_t doc_number(const struct doc *object, const char *path, int64_t fallback);
const struct doc *doc_dotted(const struct doc *object, const char *path);
double doc_real(const struct doc *node, double fallback);

/* A table whose columns are as wide as their cells. */
enum { TABLE_COLUMNS_MAX = 24 };
struct text_table {
    size_t columns;
    bool hidden[TABLE_COLUMNS_MAX];
    uint8_t worth[TABLE_COLUMNS_MAX]; /* 0: always shown; else table_fit hides the highest first */
    size_t width[TABLE_COLUMNS_MAX];
    VEC(struct str) cells; /* row by row */
    struct arena arena;
    bool header_printed;
};
void table_add(struct text_table *table, struct str cell); /* adds the next cell; a row has `columns` */
void table_heads(struct text_table *table, const char *const *names); /* adds a row of `columns` names */
/* Hides columns until a row has at most `width` characters, or only columns remain that are always shown.
 * Appends the names of the hidden columns to *ret_hidden. */
void table_fit(struct text_table *table, size_t width, struct buf *ret_hidden);
void table_print(struct text_table *table, struct buf *out,
                 bool color); /* appends all rows so far, and forgets them */
void table_done(struct text_table *table);

#endif
